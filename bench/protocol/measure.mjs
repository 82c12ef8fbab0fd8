// One sample: so many clients call a variant for so long; the server's own counters say what it cost.
import { fromPg } from "idemkit/pg";
import pg from "pg";

/** @typedef {{ rate: number, walBytes: number, deadTuples: number }} Sample */
/** @typedef {{ connectionString: string, clients: number, seconds: number, pipeline: boolean }} Load */

/**
 * @param {pg.Client} admin
 * @returns {Promise<{ wal: number, dead: number }>} bytes of WAL, and row versions of records that an update left dead
 */
async function counters(admin) {
  const { rows } = await admin.query(
    `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as wal,
            (select coalesce(sum(n_tup_upd + n_tup_del), 0)::float8 from pg_stat_user_tables
             where relname in ('claimed_record', 'idempotency_record')) as dead`,
  );
  return /** @type {{ wal: number, dead: number }} */ (rows[0]);
}

/**
 * @param {pg.Client} admin
 * @param {import("./variants.mjs").Command} run
 * @param {Load} load
 * @returns {Promise<Sample>}
 */
export async function sample(admin, run, { connectionString, clients, seconds, pipeline }) {
  const pool = new pg.Pool({ connectionString, max: clients, connectionTimeoutMillis: 10_000, pipeline });
  const database = fromPg(pool);
  await Promise.all(Array.from({ length: clients * 4 }, () => run(database))); // connections and prepared statements
  const before = await counters(admin);
  const from = performance.now();
  const until = from + seconds * 1000;
  let commands = 0;
  const client = async () => {
    while (performance.now() < until) {
      await run(database);
      commands += 1;
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  const tookMs = performance.now() - from;
  const { wal } = await counters(admin);
  await pool.end(); // a backend that ends reports its counts
  const { dead } = await counters(admin);
  return {
    rate: (commands * 1000) / tookMs,
    walBytes: (wal - before.wal) / commands,
    deadTuples: (dead - before.dead) / commands,
  };
}
