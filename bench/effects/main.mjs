// What the external mode costs over the same statements written by hand, and what a step of a saga costs. The provider answers
// at once: with a real one, which takes a hundred milliseconds, nothing of this could be seen.
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { migrate, withEffects } from "idemkit";
import { fromPg } from "idemkit/pg";
import pg from "pg";

import { startPostgres } from "../../scripts/embedded-postgres.mjs";
import { byHand } from "./by-hand.mjs";
import { byHand as sagasByHand, byIdemkit as sagasByIdemkit, stepsOfSaga } from "./sagas.mjs";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "2" },
    rounds: { type: "string", default: "7" },
    connections: { type: "string", default: "16" },
    sagas: { type: "string", default: "100" },
  },
});
const seconds = Number(values.seconds);
const rounds = Number(values.rounds);
const concurrency = Number(values.connections);
if (!(seconds > 0 && rounds >= 1 && concurrency >= 1)) {
  throw new Error("npm run bench:effects -- [--seconds 2] [--rounds 7] [--connections 16] [--sagas 100]");
}

/** @param {string} key */
const provider = (key) => Promise.resolve({ chargeId: `ch_${key}` });

const postgres = await startPostgres({
  dataDir: join(tmpdir(), `idemkit-bench-effects-${randomUUID()}`),
  settings: { max_connections: 100 },
  durable: true,
  temporary: true,
});
const pool = new pg.Pool({
  connectionString: postgres.connectionString,
  max: concurrency + 1,
  connectionTimeoutMillis: 10_000,
  pipeline: true,
});
pool.on("error", () => {});
const database = fromPg(pool);
await migrate(database);
await pool.query(readFileSync(new URL("schema.sql", import.meta.url), "utf8"));

const charge = withEffects(
  database,
  { operation: "charge" },
  async (/** @type {{ amount: string, customer: string }} */ command, once) => {
    const charged = await once.effect("charge", { run: ({ key }) => provider(key) });
    await once.transaction((tx) =>
      tx.query({
        name: "charge",
        text: "insert into charge (customer, amount, charge_id) values ($1, $2, $3)",
        values: [command.customer, command.amount, charged.chargeId],
      }),
    );
    return { ...charged, amount: command.amount };
  },
);
const hand = byHand(pool, provider);
/** @type {Record<string, (key: string) => Promise<unknown>>} */
const variants = {
  hand: (key) => hand("alice", key, { amount: "21.00" }),
  idemkit: (key) => charge({ scope: "alice", key, command: { amount: "21.00", customer: "alice" } }),
};

/**
 * Each connection does one of each in turn, so that what else the machine does falls on both.
 * @param {number} forSeconds
 * @returns {Promise<Record<string, number>>} operations a second, had each variant run alone
 */
async function ratesOf(forSeconds) {
  const begun = performance.now();
  /** @type {Record<string, number>} */
  const spentMs = { hand: 0, idemkit: 0 };
  let done = 0;
  const worker = async (/** @type {unknown} */ _none, /** @type {number} */ n) => {
    const names = n % 2 === 0 ? ["hand", "idemkit"] : ["idemkit", "hand"];
    while (performance.now() - begun < forSeconds * 1000) {
      for (const name of names) {
        const started = performance.now();
        await variants[name]?.(randomUUID());
        spentMs[name] = (spentMs[name] ?? 0) + performance.now() - started;
      }
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: concurrency }).map(worker));
  return Object.fromEntries(
    Object.entries(spentMs).map(([name, ms]) => [name, (1000 * concurrency * done) / ms]),
  );
}

/** @param {readonly number[]} numbers */
function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? 0;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? 0)) / 2;
}

await ratesOf(seconds);
/** @type {Record<string, number[]>} */
const rates = { hand: [], idemkit: [], "saga by hand": [], "saga by idemkit": [] };
const batches = 4;
const load = { count: Math.ceil(Number(values.sagas) / batches), concurrency };
for (let round = 0; round < rounds; round += 1) {
  console.error(`round ${round + 1} of ${rounds}`);
  for (const [name, rate] of Object.entries(await ratesOf(seconds))) rates[name]?.push(rate);
  const took = { hand: 0, idemkit: 0 };
  for (let batch = 0; batch < batches; batch += 1) {
    took.hand += await sagasByHand(pool, provider, load);
    took.idemkit += await sagasByIdemkit(fromPg(pool), provider, load);
  }
  const steps = batches * load.count * stepsOfSaga;
  rates["saga by hand"]?.push(steps / took.hand);
  rates["saga by idemkit"]?.push(steps / took.idemkit);
}
await pool.end();
await postgres.remove();

const ratioOf = (/** @type {string} */ ours, /** @type {string} */ theirs) =>
  Number(median((rates[ours] ?? []).map((rate, n) => rate / (rates[theirs]?.[n] ?? rate))).toFixed(3));
const perSecond = Object.fromEntries(
  Object.entries(rates).map(([name, own]) => [name, Math.round(median(own))]),
);
const stepMs = Number((1000 * (concurrency / median(rates["saga by idemkit"] ?? []))).toFixed(2));
console.log(
  JSON.stringify({
    ratios: {
      "external mode over hand-written": ratioOf("idemkit", "hand"),
      "saga step over hand-written": ratioOf("saga by idemkit", "saga by hand"),
    },
    perSecond,
    sagaStepMs: stepMs,
    connections: concurrency,
  }),
);
