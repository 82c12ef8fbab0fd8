// Compares idemkit's protocol with its alternatives on one PostgreSQL: rate, WAL bytes and dead tuples of a command, in
// interleaved rounds. The last line is one JSON object. Options: --rounds N --seconds N --clients N.
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { migrate } from "idemkit";
import { fromPg } from "idemkit/pg";
import pg from "pg";

import { startPostgres } from "../../scripts/embedded-postgres.mjs";
import { sample } from "./measure.mjs";
import { replaysLockedOut, serializableAborts } from "./traps.mjs";
import { variants } from "./variants.mjs";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "7" },
    seconds: { type: "string", default: "2" },
    clients: { type: "string", default: "8" },
  },
});
const load = { clients: Number(values.clients), seconds: Number(values.seconds) };

/** @param {readonly number[]} numbers */
function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/**
 * @param {boolean} pipeline
 * @param {pg.Client} admin
 * @param {string} connectionString
 */
async function compare(pipeline, admin, connectionString) {
  /** @type {Map<string, import("./measure.mjs").Sample[]>} */
  const samples = new Map(Object.keys(variants).map((name) => [name, []]));
  for (let round = 0; round < Number(values.rounds); round += 1) {
    for (const [name, run] of Object.entries(variants)) {
      samples.get(name)?.push(await sample(admin, run, { ...load, connectionString, pipeline }));
    }
  }
  return Object.fromEntries([...samples].map(([name, each]) => [name, summary(each)]));
}

/** @param {readonly import("./measure.mjs").Sample[]} samples */
function summary(samples) {
  return {
    rate: Math.round(median(samples.map(({ rate }) => rate))),
    walBytes: Math.round(median(samples.map(({ walBytes }) => walBytes))),
    deadTuples: Number(median(samples.map(({ deadTuples }) => deadTuples)).toFixed(2)),
  };
}

const postgres = await startPostgres({
  dataDir: join(tmpdir(), `idemkit-bench-protocol-${process.pid}`),
  // Without full-page images the WAL of a command is the steady one, as between two checkpoints of a busy table.
  settings: { autovacuum: "off", checkpoint_timeout: "1h", max_wal_size: "8GB", full_page_writes: "off" },
  temporary: true,
});
try {
  const { connectionString } = postgres;
  const admin = new pg.Client({ connectionString });
  await admin.connect();
  await admin.query(readFileSync(new URL("schema.sql", import.meta.url), "utf8"));
  const pool = new pg.Pool({ connectionString, max: 1, connectionTimeoutMillis: 10_000 });
  await migrate(fromPg(pool));
  await pool.end();
  const results = {
    plain: await compare(false, admin, connectionString),
    pipelined: await compare(true, admin, connectionString),
  };
  const replays = await replaysLockedOut(connectionString);
  const serializable = await serializableAborts(connectionString, load);
  for (const [mode, rows] of Object.entries(results)) {
    for (const [name, { rate, walBytes, deadTuples }] of Object.entries(rows)) {
      console.log(
        `${mode.padEnd(10)} ${name.padEnd(16)} ${rate}/s, ${walBytes} B of WAL, ${deadTuples} dead tuples`,
      );
    }
  }
  console.log(`replays told "in progress", of 1600: ${JSON.stringify(replays)}`);
  console.log(`under SERIALIZABLE: ${JSON.stringify(serializable)}`);
  await admin.end();
  console.log(JSON.stringify({ ...results, replays, serializable }));
} finally {
  await postgres.remove();
}
