// Ten million processed events in one day's partition: how long its expiry takes beside an open insert, and what it leaves.
//
//   node bench/messaging/retention.mjs [--events N]
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { createInbox, migrate, retainProcessedEvents } from "idemkit";
import { fromPg } from "idemkit/pg";
import pg from "pg";
import { v7 } from "uuid";

import { startPostgres } from "../../scripts/embedded-postgres.mjs";

const dayMs = 86_400_000;

/** The lowest id of a time. @param {number} ms */
function bound(ms) {
  const hex = ms.toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}

/** @param {pg.Pool} pool @param {Date} day @param {number} events */
async function fillDay(pool, day, events) {
  const name = `processed_event_${day.toISOString().slice(0, 10).replaceAll("-", "")}`;
  await pool.query(`create table idemkit.${name} (like idemkit.processed_event including all)`);
  await pool.query(`alter table idemkit.processed_event attach partition idemkit.${name}
    for values from ('${bound(day.getTime())}') to ('${bound(day.getTime() + dayMs)}')`);
  // Ids as UUIDv7 has them: 48 bits of time in order, then what differs within a millisecond.
  await pool.query(
    `insert into idemkit.processed_event (event_id, consumer_name)
     select (lpad(to_hex($1::bigint + n * $2::bigint / $3::bigint), 12, '0')
       || '7' || lpad(to_hex(n & 4095), 3, '0') || '8' || lpad(to_hex(n), 15, '0'))::uuid, 'ledger'
     from generate_series(0, $3::bigint - 1) as n`,
    [day.getTime(), dayMs, events],
  );
  return name;
}

/** @param {pg.Pool} pool */
async function deadTuples(pool) {
  await pool.query("select pg_stat_force_next_flush()");
  const { rows } = await pool.query(
    `select coalesce(sum(n_dead_tup), 0)::int as dead from pg_stat_user_tables
     where starts_with(relname, 'processed_event_') and relname <> 'processed_event_horizon'`,
  );
  return rows[0].dead;
}

/** @param {string} connectionString @param {number} events */
async function measure(connectionString, events) {
  const pool = new pg.Pool({ connectionString, max: 6, connectionTimeoutMillis: 5000 });
  const database = fromPg(pool);
  await migrate(database);
  await retainProcessedEvents(database);
  const started = performance.now();
  const day = new Date(Math.floor(Date.now() / dayMs) * dayMs - 20 * dayMs);
  const name = await fillDay(pool, day, events);
  const filledMs = performance.now() - started;
  const { rows: sizes } = await pool.query(
    `select pg_total_relation_size('idemkit.${name}')::float8 / 1048576 as mib`,
  );

  const open = await pool.connect();
  await open.query("begin");
  await open.query("insert into idemkit.processed_event (event_id, consumer_name) values ($1, 'open')", [
    v7(),
  ]);
  const inbox = createInbox({ database, consumer: "ledger" }, { "*": () => {} });
  const consuming = consumeUntil(inbox);

  const walBefore = await pool.query("select pg_current_wal_lsn() as lsn");
  const expiring = performance.now();
  const round = await retainProcessedEvents(database);
  const expiredMs = performance.now() - expiring;
  if (!round.expired.includes(name)) throw new Error(`${name} was not expired: ${JSON.stringify(round)}`);
  const wal = await pool.query("select pg_wal_lsn_diff(pg_current_wal_lsn(), $1)::float8 / 1024 as kib", [
    walBefore.rows[0].lsn,
  ]);
  const slowestMs = await consuming.stop();
  await open.query("commit");
  open.release();
  const dead = await deadTuples(pool);
  await pool.end();
  return {
    events,
    filledMs: Math.round(filledMs),
    mib: Math.round(sizes[0].mib),
    expiredMs: Math.round(expiredMs),
    walKib: Math.round(wal.rows[0].kib),
    slowestDeliveryMs: Math.round(slowestMs),
    deadTuples: dead,
  };
}

/** Delivers events all the while, and tells how long the slowest took. @param {import("idemkit").Inbox} inbox */
function consumeUntil(inbox) {
  const stopping = new AbortController();
  let slowestMs = 0;
  const ended = (async () => {
    while (!stopping.signal.aborted) {
      const started = performance.now();
      await inbox.process({
        eventId: v7(),
        type: "x",
        topic: "t",
        key: "k",
        payload: Buffer.from("{}"),
        headers: {},
      });
      slowestMs = Math.max(slowestMs, performance.now() - started);
    }
  })();
  return {
    stop: async () => {
      stopping.abort();
      await ended;
      return slowestMs;
    },
  };
}

const { values } = parseArgs({ options: { events: { type: "string", default: "10000000" } } });
const server = await startPostgres({
  dataDir: join(tmpdir(), `idemkit-retention-${process.pid}`),
  temporary: true,
  settings: { max_wal_size: "2GB" },
});
try {
  console.log(JSON.stringify(await measure(server.connectionString, Number(values.events))));
} finally {
  await server.remove();
}
