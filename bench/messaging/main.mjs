// npm run bench:messaging: the relay and the inbox beside others, in one run on one server with fsync on. The last line is
// one JSON object.
//
//   npm run bench:messaging -- [--rounds N]
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

import pg from "pg";

import { startPostgres } from "../../scripts/embedded-postgres.mjs";
import { measureInbox } from "./inbox.mjs";
import { measureOutbox, serverSettings } from "./outbox/main.mjs";

/** @param {string} serverUrl */
async function inboxRatios(serverUrl, rounds = 5) {
  const admin = new pg.Client({ connectionString: serverUrl });
  await admin.connect();
  await admin.query("create database bench_inbox");
  await admin.end();
  const url = new URL(serverUrl);
  url.pathname = "/bench_inbox";
  const found = await measureInbox({
    connectionString: url.href,
    events: 400,
    rounds: 10 * rounds,
    batch: 200,
  });
  for (const [name, { rate, walPerEvent }] of Object.entries(found)) {
    console.log(
      `${name.padEnd(42)} ${String(rate).padStart(7)} events/s ${String(walPerEvent).padStart(6)} WAL bytes each`,
    );
  }
  const rate = (/** @type {string} */ name) => found[name]?.rate ?? 0;
  return {
    inboxVsSingle: rate("inbox, batches") / Math.max(rate("inbox, single"), rate("by hand, single")),
    inboxVsHandwritten: rate("inbox, batches") / rate("by hand, batches"),
  };
}

const { values } = parseArgs({ options: { rounds: { type: "string", default: "3" } } });
const rounds = Number(values.rounds);
const dataDir = join(tmpdir(), `idemkit-bench-${process.pid}`);
const server = await startPostgres({ dataDir, settings: serverSettings, temporary: true });
try {
  const inbox = await inboxRatios(server.connectionString, Math.max(5, rounds));
  const outbox = await measureOutbox(server.connectionString, { rounds, backlog: true });
  const ratios = Object.entries({ ...outbox, ...inbox }).map(([name, ratio]) => [
    name,
    Math.round(ratio * 100) / 100,
  ]);
  console.log(JSON.stringify({ ratios: Object.fromEntries(ratios) }));
} finally {
  await server.remove();
}
