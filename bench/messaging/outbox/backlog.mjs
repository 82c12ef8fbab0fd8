import { once } from "node:events";

import { enqueueAll, migrate, startRelay } from "idemkit";
import { fromPg } from "idemkit/pg";
import pg from "pg";

import { eventsOf } from "./measure.mjs";

/** Events of one statement of the writer. */
const chunk = 500;

/**
 * How fast a relay that is running drains a backlog that appears all at once, by the commit of one large transaction: in
 * events a second from that commit to the last delivery, once for each count.
 * @param {string} connectionString
 * @param {readonly number[]} counts
 */
export async function backlogRates(connectionString, counts) {
  const pool = new pg.Pool({ connectionString, max: 8, connectionTimeoutMillis: 10_000 });
  const database = fromPg(pool);
  await migrate(database);
  let delivered = 0;
  let wanted = 0;
  const progress = new EventTarget();
  /** @type {import("idemkit").Publisher} */
  const publisher = {
    publish: async (messages) => {
      delivered += messages.length;
      if (delivered >= wanted) progress.dispatchEvent(new Event("drained"));
      return messages.map(() => ({ published: "acknowledged" }));
    },
    [Symbol.asyncDispose]: async () => {},
  };
  const logger = { info: () => {}, error: () => {} };
  const relay = startRelay(database, { publisher, notify: { connectionString }, logger });
  const rates = [];
  for (const count of counts) {
    wanted = delivered + count;
    const drained = once(progress, "drained");
    const client = await pool.connect();
    await client.query("begin");
    for (let left = count; left > 0; left -= chunk) {
      const events = eventsOf(Math.min(chunk, left));
      await enqueueAll(
        client,
        events.map(({ key, payload }) => ({ type: "order.created", key, payload })),
        { database },
      );
    }
    await client.query("commit");
    const committedMs = performance.now();
    client.release();
    await drained;
    rates.push(count / ((performance.now() - committedMs) / 1000));
  }
  await relay.stop();
  await pool.end();
  return rates;
}
