// One member of the group "ledger": double entry, one effect for each event. SIGTERM has it leave, SIGKILL doesn't.
import { consume } from "idemkit/kafka";
import { fromPg } from "idemkit/pg";
import pg from "pg";

import { clientOf } from "./client.mjs";

const { DATABASE_URL = "", BROKERS = "", CLIENT = "", TOPIC = "" } = process.env;
const pool = new pg.Pool({ connectionString: DATABASE_URL, connectionTimeoutMillis: 5000, max: 8 });
pool.on("error", () => {});

const write = `with e as (insert into effect (event_id, key, n) values ($1, $2, $3))
insert into entry (event_id, account, amount) values ($1, $2, $4), ($1, 'revenue', -$4)`;

let suppressed = 0;
const consumer = consume(
  {
    database: fromPg(pool),
    client: await clientOf(CLIENT, BROKERS),
    consumer: "ledger",
    topics: [TOPIC],
    sessionTimeoutMs: 6000,
    heartbeatMs: 500,
    rebalanceTimeoutMs: 10_000,
    maxWaitMs: 100,
    revokeGraceMs: 2000,
    logger: { info: (message) => console.log(message), error: (message) => console.log(message) },
    observe: { outcome: (outcome) => void (suppressed += outcome === "duplicate" ? 1 : 0) },
  },
  {
    "payment.charged": async ({ eventId, key, data }, { tx }) => {
      const { n, cents } = /** @type {{ n: number, cents: number }} */ (data);
      await tx.query({ name: "write", text: write, values: [eventId, key, n, cents] });
    },
  },
);

/** Told as they come: a process that is killed has no last word. */
const report = setInterval(() => {
  if (suppressed > 0) console.log(`suppressed ${suppressed}`);
  suppressed = 0;
}, 100);

async function leave() {
  await consumer.stop();
  clearInterval(report);
  if (suppressed > 0) console.log(`suppressed ${suppressed}`);
  await pool.end();
  // KafkaJS forgets a connection to a broker that was restarted, which would keep the process alive.
  process.exit();
}

process.once("SIGTERM", () => void leave());
process.on("SIGUSR2", () => console.log(`stats ${JSON.stringify(consumer.stats())}`));
console.log("ready");
