// An inbox for events from any source: a queue's worker, a poller, another process. Run it with DATABASE_URL set.
import { createInbox, derivedEventId, migrate } from "idemkit";
import { fromPg } from "idemkit/pg";
import pg from "pg";

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, connectionTimeoutMillis: 5000 });
const database = fromPg(pool);
await migrate(database);
await pool.query("create table if not exists booking (payment text, amount numeric(19,4))");

// #region inbox
const inbox = createInbox(
  { database, consumer: "ledger" },
  {
    "payment.charged": async (event, { tx }) => {
      const { payment, amount } = event.data;
      await tx.query("insert into booking values ($1, $2)", [payment, amount]);
    },
  },
);

/** Called by the source, once or several times for the same event: acknowledge when it resolves. */
async function received(message) {
  const outcome = await inbox.process({
    eventId: derivedEventId("acme", message.id),
    type: message.type,
    topic: "payment",
    key: message.payment,
    payload: Buffer.from(JSON.stringify({ payment: message.payment, amount: message.amount })),
    headers: {},
  });
  console.log(outcome);
}
// #endregion

const message = {
  id: "evt_1",
  type: "payment.charged",
  payment: "payment-1",
  amount: "12.50",
};
await received(message);
await received(message);
const { rows } = await pool.query("select from booking");
console.log(`${rows.length} booking`);
await pool.end();
