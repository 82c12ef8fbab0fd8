// A consumer of its own process: takes events from its arguments' file line by line and acknowledges each on its output,
// where Kafka would take an offset. Told to, it dies between the commit and the acknowledgement.
import { createInterface } from "node:readline";

import { createInbox } from "idemkit";
import { fromPg } from "idemkit/pg";
import { crash, withCrashPoints } from "idemkit/testing";
import pg from "pg";

const {
  DIE_BEFORE_ACK: dieBeforeAck,
  DIE_IN_HANDLER: dieInHandler,
  CRASH_AT: crashAt,
  DATABASE_URL: connectionString,
} = process.env;
const pool = new pg.Pool({
  connectionString,
  max: 3,
  connectionTimeoutMillis: 5000,
});
pool.on("error", () => {});

const database = withCrashPoints(fromPg(pool), (point) => {
  if (point === crashAt) crash();
});
const inbox = createInbox(
  { database, consumer: "ledger", onGap: "hold", retry: { baseMs: 1 } },
  {
    "payment.charged": async ({ data }, { tx }) => {
      const { name } = /** @type {{ name: string }} */ (data);
      await tx.query("insert into effect (consumer, event) values ('ledger', $1)", [name]);
      if (name === dieInHandler) crash();
    },
  },
);

/** @param {string} line */
function eventsOf(line) {
  const batch = /** @type {{ eventId: string, key: string, version: number, name: string }[]} */ (
    JSON.parse(line)
  );
  return batch.map(({ eventId, key, version, name }) => ({
    eventId,
    type: "payment.charged",
    topic: "payment",
    key,
    payload: Buffer.from(JSON.stringify({ name })),
    headers: {},
    aggregateVersion: version,
  }));
}

console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  const events = eventsOf(line);
  const outcomes = await inbox.processBatch(events);
  if (events.some(({ payload }) => payload.toString().includes(`"${dieBeforeAck}"`))) crash();
  console.log(`ack ${JSON.stringify(outcomes)}`);
}
await pool.end();
