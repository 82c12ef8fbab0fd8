// The batch inbox beside one transaction per message and beside the same SQL written by hand, in one run on one server
// with fsync on. Variants are interleaved in many short rounds and medians compared: a busy machine changes from one
// second to the next.
//
//   node bench/messaging/inbox.mjs [--events N] [--rounds N] [--batch N]
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { pathToFileURL } from "node:url";

import { createInbox, migrate, retainProcessedEvents } from "idemkit";
import { fromPg } from "idemkit/pg";
import pg from "pg";
import { v7 } from "uuid";

import { startPostgres } from "../../scripts/embedded-postgres.mjs";

/** @typedef {import("idemkit").EventMessage} EventMessage */
/** @typedef {{ name: string, run: (events: EventMessage[]) => Promise<void> }} Variant */

const effect = {
  name: "bench-effect",
  text: "insert into entry (account, amount) values ($1, $2)",
};
const record = {
  name: "bench-record",
  text: `insert into idemkit.processed_event (event_id, consumer_name)
    select e.id, $2 from unnest($1::uuid[]) as e (id) order by e.id
    on conflict do nothing returning event_id`,
};

/** @param {number} count @returns {EventMessage[]} */
function eventsOf(count) {
  return Array.from({ length: count }, (_, i) => ({
    eventId: v7(),
    type: "payment.charged",
    topic: "payment",
    key: `order-${i % 2000}`,
    payload: Buffer.from(`{"account":"a-${i % 500}","amount":"10.00"}`),
    headers: {},
  }));
}

/**
 * @template T
 * @param {T[]} all
 * @param {number} size
 * @returns {T[][]}
 */
function chunksOf(all, size) {
  const chunks = [];
  for (let at = 0; at < all.length; at += size) chunks.push(all.slice(at, at + size));
  return chunks;
}

/** @param {import("pg").ClientBase} client @param {unknown} data */
function book(client, data) {
  const { account, amount } = /** @type {{ account: string, amount: string }} */ (data);
  return client.query({ ...effect, values: [account, amount] });
}

/**
 * @param {import("pg").Pool} pool
 * @param {string} consumer
 * @param {EventMessage[]} events
 */
async function byHand(pool, consumer, events) {
  const client = await pool.connect();
  try {
    await client.query("begin");
    const { rows } = await client.query({
      ...record,
      values: [events.map(({ eventId }) => eventId), consumer],
    });
    const first = new Set(rows.map((row) => row.event_id));
    for (const event of events) {
      if (first.has(event.eventId)) await book(client, JSON.parse(Buffer.from(event.payload).toString()));
    }
    await client.query("commit");
  } finally {
    client.release();
  }
}

/** @param {import("pg").Pool} pool @param {number} size @returns {Variant[]} */
function variantsOn(pool, size) {
  const handlers = {
    "payment.charged": (
      /** @type {import("idemkit").ReceivedEvent} */ { data },
      /** @type {import("idemkit").EventContext<import("pg").PoolClient>} */ { tx },
    ) => book(tx, data),
  };
  const database = fromPg(pool);
  const batch = createInbox({ database, consumer: "batch" }, handlers);
  const single = createInbox({ database, consumer: "single" }, handlers);
  return [
    {
      name: "inbox, batches",
      run: async (events) => {
        for (const chunk of chunksOf(events, size)) await batch.processBatch(chunk);
      },
    },
    {
      name: "by hand, batches",
      run: async (events) => {
        for (const chunk of chunksOf(events, size)) await byHand(pool, "hand-batch", chunk);
      },
    },
    {
      name: "inbox, single",
      run: async (events) => {
        for (const event of events) await single.process(event);
      },
    },
    {
      name: "by hand, single",
      run: async (events) => {
        for (const event of events) await byHand(pool, "hand-single", [event]);
      },
    },
  ];
}

/** @param {number[]} values */
function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

/** @param {import("pg").Pool} pool */
async function walBytes(pool) {
  const { rows } = await pool.query("select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 as bytes");
  return /** @type {number} */ (rows[0].bytes);
}

/**
 * @param {{ connectionString: string, events: number, rounds: number, batch: number, pipeline?: boolean }} options
 * @returns {Promise<Record<string, { rate: number, walPerEvent: number }>>} events per second, medians
 */
export async function measureInbox({ connectionString, events, rounds, batch, pipeline = true }) {
  const pool = new pg.Pool({ connectionString, max: 4, connectionTimeoutMillis: 5000, pipeline });
  try {
    const database = fromPg(pool);
    await migrate(database);
    await retainProcessedEvents(database);
    await pool.query(
      "create table if not exists entry (id bigint generated always as identity, account text, amount numeric(19,4))",
    );
    const variants = variantsOn(pool, batch);
    /** @type {Record<string, { rates: number[], wal: number[] }>} */
    const seen = Object.fromEntries(variants.map(({ name }) => [name, { rates: [], wal: [] }]));
    for (const { run } of variants) await run(eventsOf(batch));
    for (let round = 0; round < rounds; round += 1) {
      for (const { name, run } of round % 2 === 0 ? variants : variants.toReversed()) {
        const mine = eventsOf(events);
        const walBefore = await walBytes(pool);
        const started = performance.now();
        await run(mine);
        const seconds = (performance.now() - started) / 1000;
        seen[name]?.rates.push(events / seconds);
        seen[name]?.wal.push(((await walBytes(pool)) - walBefore) / events);
      }
    }
    const { rows } = await pool.query("select count(*)::int as n from entry");
    const expected = variants.length * (batch + rounds * events);
    if (rows[0].n !== expected) throw new Error(`${rows[0].n} effects of ${expected} events`);
    return Object.fromEntries(
      Object.entries(seen).map(([name, { rates, wal }]) => [
        name,
        { rate: Math.round(median(rates)), walPerEvent: Math.round(median(wal)) },
      ]),
    );
  } finally {
    await pool.end();
  }
}

async function main() {
  const { values } = parseArgs({
    options: {
      events: { type: "string", default: "400" },
      rounds: { type: "string", default: "15" },
      batch: { type: "string", default: "200" },
      pipeline: { type: "string", default: "true" },
    },
  });
  const server = await startPostgres({
    dataDir: join(tmpdir(), `idemkit-bench-${process.pid}`),
    temporary: true,
  });
  try {
    const found = await measureInbox({
      connectionString: server.connectionString,
      events: Number(values.events),
      rounds: Number(values.rounds),
      batch: Number(values.batch),
      pipeline: values.pipeline === "true",
    });
    for (const [name, { rate, walPerEvent }] of Object.entries(found)) {
      console.log(
        `${name.padEnd(20)} ${String(rate).padStart(7)} events/s ${String(walPerEvent).padStart(6)} WAL bytes each`,
      );
    }
    const rate = (/** @type {string} */ name) => found[name]?.rate ?? 0;
    const ratios = {
      inboxVsSingle: rate("inbox, batches") / Math.max(rate("inbox, single"), rate("by hand, single")),
      inboxVsHandwritten: rate("inbox, batches") / rate("by hand, batches"),
    };
    console.log(
      JSON.stringify({
        ratios: Object.fromEntries(Object.entries(ratios).map(([k, v]) => [k, Math.round(v * 100) / 100])),
      }),
    );
  } finally {
    await server.remove();
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await main();
