import pg from "pg";
import {
  DatabaseSetup,
  getDisabledLogger,
  initializeMessageStorage,
  initializePollingMessageListener,
} from "pg-transactional-outbox";

const names = { dbSchema: "public", dbTable: "outbox", nextMessagesFunctionName: "next_outbox_messages" };
/** As it comes: batches of five, a look every half second, both protections on. */
const stock = { enableMaxAttemptsProtection: true, enablePoisonousMessageProtection: true };
/** The settings that were fastest in trials: more at once, no pause, no protection. */
const tuned = {
  enableMaxAttemptsProtection: false,
  enablePoisonousMessageProtection: false,
  nextMessagesBatchSize: 100,
  nextMessagesPollingIntervalInMs: 10,
};

/**
 * Polling, in order of each key: the segment is the key. Its handler takes one message a call.
 * @param {string} connectionString
 * @param {{ tuned: boolean }} options
 * @returns {Promise<import("../outbox/contender.mjs").Contender>}
 */
export async function pgTransactionalOutbox(connectionString, options) {
  const pool = new pg.Pool({ connectionString, max: 4 });
  const place = {
    outboxOrInbox: /** @type {const} */ ("outbox"),
    database: "",
    listenerRole: "",
    schema: "public",
  };
  const setup = { ...place, table: names.dbTable, nextMessagesName: names.nextMessagesFunctionName };
  await pool.query(DatabaseSetup.dropAndCreateTable(setup));
  await pool.query(DatabaseSetup.createPollingFunction(setup));
  await pool.query(DatabaseSetup.setupPollingIndexes(setup));
  const settings = { ...names, ...(options.tuned ? tuned : stock) };
  const store = initializeMessageStorage({ outboxOrInbox: "outbox", settings }, getDisabledLogger());

  return {
    enqueue: async (events) => {
      const client = await pool.connect();
      await client.query("begin");
      for (const { eventId, key, payload } of events) {
        const message = {
          id: eventId,
          aggregateType: "order",
          aggregateId: key,
          messageType: "order.created",
        };
        await store({ ...message, segment: key, payload }, client);
      }
      await client.query("commit");
      client.release();
    },
    start: async (deliver) => {
      const config = {
        outboxOrInbox: place.outboxOrInbox,
        dbListenerConfig: { connectionString, max: 20 },
        settings,
      };
      const handle = (/** @type {{ id: string, aggregateId: string }} */ { id, aggregateId }) =>
        deliver([{ eventId: id, key: aggregateId }]);
      const [shutdown] = initializePollingMessageListener(config, { handle }, getDisabledLogger());
      return shutdown;
    },
    left: async () => {
      const { rows } = await pool.query(
        `select count(*) filter (where processed_at is null and abandoned_at is null)::int as waiting,
                count(*) filter (where abandoned_at is not null)::int as abandoned from outbox`,
      );
      return rows[0];
    },
    close: () => pool.end(),
  };
}
