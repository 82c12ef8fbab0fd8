// The relay beside other outboxes and queues, in one run on one server with fsync on. Rounds are interleaved and medians
// compared: runs differ by a fifth on a busy machine.
//
//   node bench/messaging/outbox/main.mjs [--rounds N] [--only NAME] [--no-backlog]
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

import pg from "pg";

import { startPostgres } from "../../../scripts/embedded-postgres.mjs";
import { backlogRates } from "./backlog.mjs";
import { contenders } from "./contenders.mjs";
import { drain, latency } from "./measure.mjs";

/** @typedef {import("./measure.mjs").Drain} Drain */
/** @typedef {import("./contenders.mjs").Entry} Entry */

const publishers = [
  { publisher: "no-op", publishMs: 0 },
  { publisher: "2 ms", publishMs: 2 },
];
const backlogs = [5000, 50_000, 500_000];

/** @param {number[]} values */
function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

let databases = 0;

/** A new one for each measurement: what another left behind must not slow it. @param {string} serverUrl */
async function database(serverUrl) {
  databases += 1;
  const name = `bench_outbox_${databases}`;
  const admin = new pg.Client({ connectionString: serverUrl });
  await admin.connect();
  await admin.query(`create database "${name}"`);
  await admin.end();
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}

/** @param {string} name @param {Drain[]} samples */
function report(name, samples) {
  const of = (/** @type {keyof Drain} */ member) => median(samples.map((sample) => sample[member]));
  const sum = (/** @type {keyof Drain} */ member) =>
    samples.reduce((total, sample) => total + sample[member], 0);
  const faults = ["lost", "duplicated", "inverted", "abandoned", "late"]
    .map((member) => `${sum(/** @type {keyof Drain} */ (member))} ${member}`)
    .join(", ");
  console.log(
    `${name.padEnd(42)} ${of("rate").toFixed(0).padStart(7)} events/s ${of("walBytes").toFixed(0).padStart(6)} WAL bytes ` +
      `and ${of("deadRows").toFixed(1)} dead rows each; ${faults}`,
  );
}

/** @param {string} serverUrl @param {{ rounds: number, only?: string | undefined }} options */
async function compare(serverUrl, { rounds, only }) {
  const entries = (await contenders()).filter(({ name }) => only === undefined || name.includes(only));
  /** @type {Map<string, Drain[]>} */
  const samples = new Map();
  for (let round = 0; round < rounds; round += 1) {
    for (const entry of round % 2 === 0 ? entries : entries.toReversed()) {
      for (const { publisher, publishMs } of publishers) {
        if (publishMs > 0 && round > 0) continue; // one round shows what a publisher that takes its time changes
        const url = await database(serverUrl);
        const contender = await entry.create(url);
        const sample = await drain(contender, { connectionString: url, count: entry.count, publishMs });
        await contender.close();
        const cell = `${entry.name}, ${publisher} publisher`;
        samples.set(cell, [...(samples.get(cell) ?? []), sample]);
      }
    }
  }
  for (const [cell, found] of samples) report(cell, found);
  return (/** @type {string} */ name) =>
    median((samples.get(`${name}, no-op publisher`) ?? []).map(({ rate }) => rate));
}

/** @param {string} serverUrl @param {string | undefined} only */
async function latencies(serverUrl, only) {
  for (const { name, create } of (await contenders()).filter(
    (entry) => only === undefined || entry.name.includes(only),
  )) {
    const contender = await create(await database(serverUrl));
    const { p50Ms, p95Ms } = await latency(contender, { count: 60 });
    await contender.close();
    console.log(
      `${name.padEnd(42)} from commit to publish: p50 ${p50Ms.toFixed(1)} ms, p95 ${p95Ms.toFixed(1)} ms`,
    );
  }
}

/**
 * The drain rate of the slowest backlog over that of the fastest, medians of many drains of the small ones: on a shared
 * machine a drain of 50 ms varies by a half.
 * @param {string} serverUrl
 * @param {number} rounds
 */
async function flatness(serverUrl, rounds) {
  /** @type {number[][]} */
  const samples = backlogs.map(() => []);
  for (let round = 0; round < rounds; round += 1) {
    // The first is a warm-up.
    const counts = [
      20_000,
      ...backlogs.flatMap((count) => Array.from({ length: repeats(count) }, () => count)),
    ];
    const found = await backlogRates(await database(serverUrl), counts);
    for (const [at, rate] of found.entries()) {
      if (at > 0) samples[backlogs.indexOf(counts[at] ?? 0)]?.push(rate);
    }
  }
  const rates = samples.map(median);
  for (const [at, rate] of rates.entries()) {
    console.log(`backlog of ${String(backlogs[at]).padStart(6)}: ${rate.toFixed(0)} events/s`);
  }
  return Math.min(...rates) / Math.max(...rates);
}

/** @param {number} count */
function repeats(count) {
  return Math.max(1, Math.min(20, Math.floor(200_000 / count)));
}

/**
 * @param {string} serverUrl
 * @param {{ rounds: number, only?: string | undefined, backlog: boolean }} options
 * @returns {Promise<Record<string, number>>} ratios
 */
export async function measureOutbox(serverUrl, { rounds, only, backlog }) {
  const rate = await compare(serverUrl, { rounds, only });
  await latencies(serverUrl, only);
  return {
    relayVsPto: rate("idemkit relay") / rate("pg-transactional-outbox, tuned"),
    relayVsPgBoss: rate("idemkit relay") / rate("pg-boss 10.4"),
    ...(backlog ? { backlogFlatness: await flatness(serverUrl, rounds) } : {}),
  };
}

/** Settings under which a bench writes to disk as in production, and no checkpoint falls into one variant only. */
export const serverSettings = { max_wal_size: "8GB", checkpoint_timeout: "1h", shared_buffers: "256MB" };

async function main() {
  const { values } = parseArgs({
    options: {
      rounds: { type: "string", default: "3" },
      only: { type: "string" },
      "no-backlog": { type: "boolean", default: false },
    },
  });
  const dataDir = join(tmpdir(), `idemkit-bench-${process.pid}`);
  const server = await startPostgres({ dataDir, settings: serverSettings, temporary: true });
  try {
    const options = { rounds: Number(values.rounds), only: values.only, backlog: !values["no-backlog"] };
    console.log(JSON.stringify({ ratios: await measureOutbox(server.connectionString, options) }));
  } finally {
    await server.remove();
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await main();
