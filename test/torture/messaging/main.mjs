// Events under torture: real Kafka, real PostgreSQL, real processes, and everything that can be killed is.
//   npm run torture:messaging -- --seconds N --seed S [--events N] [--client kafkajs|platformatic|confluent]
// The last line is one JSON object; the exit code is 1 where anything was lost, doubled, turned round or out of balance.
import { randomUUID } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { migrate } from "idemkit";
import { kafkaPublisher } from "idemkit/kafka";
import { fromPg } from "idemkit/pg";
import { Kafka, logLevel } from "kafkajs";
import pg from "pg";

import { startPostgres } from "../../../scripts/embedded-postgres.mjs";
import { createTopic } from "../../../scripts/kafka/create-topic.mjs";
import { ownBroker } from "../../../scripts/kafka/provide.mjs";
import { randomOf, readArguments } from "./arguments.mjs";
import { check, drained, progress } from "./check.mjs";
import { clientOf } from "./client.mjs";
import { faults } from "./faults.mjs";
import { processes } from "./processes.mjs";
import { resender } from "./resender.mjs";
import { schema } from "./schema.mjs";
import { write } from "./writers.mjs";

const topic = "payment";

/** How many times the given seconds faults may go on while events are still being written. */
const faultsAtMost = 3;

const { seconds, seed, events, client, verbose } = readArguments();
const startedAt = performance.now();

/** @param {string} line */
const log = (line) =>
  console.log(`${((performance.now() - startedAt) / 1000).toFixed(1).padStart(6)} s  ${line}`);

async function world() {
  // Only processes die here, never the machine.
  const dataDir = join(tmpdir(), `idemkit-torture-${randomUUID()}`);
  const [server, broker] = await Promise.all([
    startPostgres({ dataDir, durable: false, temporary: true, settings: { max_connections: 150 } }),
    ownBroker(),
  ]);
  const pool = new pg.Pool({
    connectionString: server.connectionString,
    connectionTimeoutMillis: 5000,
    max: 10,
  });
  pool.on("error", () => {});
  // Also while a writer sleeps in the middle of its transaction.
  pool.on("connect", (connection) => connection.on("error", () => {}));
  await migrate(fromPg(pool));
  await pool.query(schema);
  const admin = new Kafka({ brokers: [broker.brokers], logLevel: logLevel.NOTHING }).admin();
  await admin.connect();
  await createTopic(admin, { topic, numPartitions: 12 });
  await admin.disconnect();
  return { server, broker, pool };
}

async function run() {
  const { server, broker, pool } = await world();
  const random = randomOf(seed);
  let suppressed = 0;
  const workers = processes({
    env: { DATABASE_URL: server.connectionString, BROKERS: broker.brokers, CLIENT: client, TOPIC: topic },
    onLine: (name, line) => {
      const [word, count] = line.split(" ");
      if (word === "suppressed") suppressed += Number(count);
      else if (verbose || word === "parked" || word === "ended" || word === "stats") log(`${name}: ${line}`);
    },
  });
  const publisher = kafkaPublisher(await clientOf("kafkajs", broker.brokers), { sendTimeoutMs: 5000 });
  try {
    log(`seed ${seed}: ${events} events in ${seconds} s, then draining; consumers and relays on ${client}`);
    const trouble = faults({
      start: workers.start,
      broker,
      server,
      random: randomOf(seed + 1),
      seconds,
      log,
    });
    const again = resender({ pool, topic, publisher });
    const telling = setInterval(() => void progress(pool).then(log, () => {}), 10_000);
    // A machine that can't keep the pace gets its events done without further faults.
    const enough = setTimeout(() => void trouble.stop(), faultsAtMost * seconds * 1000);
    const { written, failed } = await write({ pool, topic, random, events, seconds });
    log(`${written} events written; ${failed} transactions failed`);
    clearTimeout(enough);
    await trouble.stop();
    await again.finish();
    log("no more faults: draining");
    await drained(pool, { patienceMs: 60_000 });
    clearInterval(telling);
    workers.askConsumers();
    const result = await check({ pool, brokers: broker.brokers, topic });
    const { counts } = trouble;
    const faultCount = Object.values(counts).reduce((sum, count) => sum + count, 0);
    return { seed, client, faults: faultCount, faultKinds: counts, suppressed, failed, ...result };
  } finally {
    await workers.endAll();
    await publisher[Symbol.asyncDispose]();
    await pool.end();
    await Promise.all([server.remove(), broker.remove()]);
  }
}

const { details, ...result } = await run();
for (const line of details) console.log(line);
const { lost, duplicated, inverted, invertedInLog, balanceCents, wrongAccounts, deadLetters } = result;
const violations = [lost, duplicated, inverted, invertedInLog, balanceCents, wrongAccounts, deadLetters];
const tookSeconds = Math.round((performance.now() - startedAt) / 1000);
console.log(JSON.stringify({ ...result, tookSeconds }));
process.exitCode = violations.some((count) => count !== 0) ? 1 : 0;
