// A relay in a process of its own, whose broker is the test: it posts each batch and waits for the answer.
import { startRelay } from "idemkit";
import { fromPg } from "idemkit/pg";
import pg from "pg";

const [connectionString, brokerUrl] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString, connectionTimeoutMillis: 10_000 });
pool.on("error", () => {});

/** @type {import("idemkit").Publisher} */
const publisher = {
  publish: async (messages, signal) => {
    const body = JSON.stringify(messages.map(({ eventId, key }) => ({ eventId, key })));
    await fetch(brokerUrl ?? "", { method: "POST", body, signal: signal ?? null });
    return messages.map(() => ({ published: "acknowledged" }));
  },
  [Symbol.asyncDispose]: async () => {},
};

const relay = startRelay(fromPg(pool), {
  publisher,
  leaseMs: 600,
  heartbeatMs: 100,
  pollMs: 20,
  batchSize: 20,
  logger: { info: () => {}, error: (text) => console.log(text) },
});
console.log("started");

async function stop() {
  await relay.stop();
  await pool.end();
  console.log("stopped");
}
process.once("SIGTERM", () => void stop());
