import { enqueueAll, migrate, outboxStatus, startRelay } from "idemkit";
import { fromPg } from "idemkit/pg";
import pg from "pg";

/**
 * @param {string} connectionString
 * @returns {Promise<import("./contender.mjs").Contender>}
 */
export async function idemkit(connectionString) {
  const pool = new pg.Pool({ connectionString, max: 8, connectionTimeoutMillis: 10_000 });
  const database = fromPg(pool);
  await migrate(database);

  return {
    enqueue: async (events) => {
      const client = await pool.connect();
      await client.query("begin");
      const outgoing = events.map(({ eventId, key, payload }) => ({
        type: "order.created",
        key,
        payload,
        headers: { bench_id: eventId },
      }));
      await enqueueAll(client, outgoing, { database });
      await client.query("commit");
      client.release();
    },
    start: async (deliver) => {
      /** @type {import("idemkit").Publisher} */
      const publisher = {
        publish: async (messages) => {
          await deliver(messages.map(({ headers: { bench_id: eventId = "" }, key }) => ({ eventId, key })));
          return messages.map(() => ({ published: "acknowledged" }));
        },
        [Symbol.asyncDispose]: async () => {},
      };
      const logger = { info: () => {}, error: () => {} };
      const relay = startRelay(database, { publisher, notify: { connectionString }, logger });
      return () => relay.stop();
    },
    left: async () => {
      const { unpublished, parkedKeys } = await outboxStatus(database);
      return { waiting: unpublished, abandoned: parkedKeys };
    },
    close: () => pool.end(),
  };
}
