import { Logger, makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";

const logger = new Logger(() => () => {});

/**
 * A queue of jobs: SQL `add_jobs` in the caller's transaction, twenty at a time. Without a queue for each key, which would
 * keep their order and cost most of the rate.
 * @param {string} connectionString
 * @returns {Promise<import("../outbox/contender.mjs").Contender>}
 */
export async function graphileWorker(connectionString) {
  const pool = new pg.Pool({ connectionString, max: 4 });
  const utils = await makeWorkerUtils({ connectionString, logger });
  await utils.migrate();
  await utils.release();

  return {
    enqueue: async (events) => {
      const client = await pool.connect();
      await client.query("begin");
      const payloads = events.map((event) => JSON.stringify(event));
      await client.query(
        `select graphile_worker.add_jobs(array(
           select json_populate_record(null::graphile_worker.job_spec, json_build_object('identifier', 'order', 'payload', e::json))
           from unnest($1::text[]) as e))`,
        [payloads],
      );
      await client.query("commit");
      client.release();
    },
    start: async (deliver) => {
      const order = (/** @type {unknown} */ payload) => {
        const { eventId, key } = /** @type {{ eventId: string, key: string }} */ (payload);
        return deliver([{ eventId, key }]);
      };
      const settings = { concurrency: 20, maxPoolSize: 21, pollInterval: 100, noHandleSignals: true };
      const runner = await run({ connectionString, logger, taskList: { order }, ...settings });
      return () => runner.stop();
    },
    left: async () => {
      const { rows } = await pool.query(
        `select count(*)::int as waiting, count(*) filter (where attempts >= max_attempts)::int as abandoned
         from graphile_worker.jobs`,
      );
      return rows[0];
    },
    close: () => pool.end(),
  };
}
