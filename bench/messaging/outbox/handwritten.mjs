import pg from "pg";

import { idleMs } from "./contender.mjs";

/**
 * The bound: an ordered SELECT and a DELETE on one connection, without leases, retries, wake-ups or a second process.
 * @param {string} connectionString
 * @returns {Promise<import("./contender.mjs").Contender>}
 */
export async function handwritten(connectionString) {
  const pool = new pg.Pool({ connectionString, max: 4 });
  await pool.query(`create table if not exists hand_outbox (
    id bigint generated always as identity primary key, event_id uuid not null, key text not null, payload json not null)`);

  return {
    enqueue: async (events) => {
      await pool.query(
        `insert into hand_outbox (event_id, key, payload)
         select * from unnest($1::uuid[], $2::text[], $3::json[])`,
        [
          events.map(({ eventId }) => eventId),
          events.map(({ key }) => key),
          events.map(({ payload }) => payload),
        ],
      );
    },
    start: async (deliver) => {
      const stopping = new AbortController();
      const loop = async () => {
        while (!stopping.signal.aborted) {
          const { rows } = await pool.query(
            "select id, event_id, key, payload from hand_outbox order by id limit 500",
          );
          if (rows.length === 0) {
            await new Promise((resolve) => setTimeout(resolve, idleMs));
            continue;
          }
          await deliver(rows.map((row) => ({ eventId: row.event_id, key: row.key })));
          await pool.query("delete from hand_outbox where id = any($1::bigint[])", [
            rows.map(({ id }) => id),
          ]);
        }
      };
      const ended = loop();
      return async () => {
        stopping.abort();
        await ended;
      };
    },
    left: async () => {
      const { rows } = await pool.query("select count(*)::int as waiting, 0 as abandoned from hand_outbox");
      return rows[0];
    },
    close: () => pool.end(),
  };
}
