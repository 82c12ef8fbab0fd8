import pg from "pg";
import PgBoss from "pg-boss";

import { idleMs } from "../outbox/contender.mjs";

const queue = "order";

/**
 * A queue of jobs: `insert` with the caller's transaction, `fetch` by five hundred, then `complete`. It promises no order.
 * @param {string} connectionString
 * @returns {Promise<import("../outbox/contender.mjs").Contender>}
 */
export async function pgBoss(connectionString) {
  const pool = new pg.Pool({ connectionString, max: 4 });
  const boss = new PgBoss({ connectionString, max: 8, supervise: false, schedule: false });
  boss.on("error", () => {});
  await boss.start();
  await boss.createQueue(queue);

  return {
    enqueue: async (events) => {
      const client = await pool.connect();
      const db = {
        executeSql: (/** @type {string} */ text, /** @type {any[]} */ values) => client.query(text, values),
      };
      await client.query("begin");
      const jobs = events.map(({ eventId, key, payload }) => ({
        name: queue,
        id: eventId,
        data: { key, payload },
      }));
      await boss.insert(jobs, { db });
      await client.query("commit");
      client.release();
    },
    start: async (deliver) => {
      const stopping = new AbortController();
      const worker = async () => {
        while (!stopping.signal.aborted) {
          const jobs = /** @type {{ id: string, data: { key: string } }[]} */ (
            await boss.fetch(queue, { batchSize: 500 })
          );
          if (jobs.length === 0) {
            await new Promise((resolve) => setTimeout(resolve, idleMs));
            continue;
          }
          await deliver(jobs.map(({ id, data }) => ({ eventId: id, key: data.key })));
          await boss.complete(
            queue,
            jobs.map(({ id }) => id),
          );
        }
      };
      const workers = [worker(), worker()];
      return async () => {
        stopping.abort();
        await Promise.all(workers);
      };
    },
    left: async () => {
      const { rows } = await pool.query(
        `select count(*) filter (where state < 'completed')::int as waiting,
                count(*) filter (where state = 'failed')::int as abandoned from pgboss.job where name = $1`,
        [queue],
      );
      return rows[0];
    },
    close: async () => {
      await boss.stop({ graceful: false, wait: true });
      await pool.end();
    },
  };
}
