// One relay process, to be killed.
import { startRelay } from "idemkit";
import { kafkaPublisher } from "idemkit/kafka";
import { fromPg } from "idemkit/pg";
import pg from "pg";

import { clientOf } from "./client.mjs";

const { DATABASE_URL = "", BROKERS = "", CLIENT = "" } = process.env;
const pool = new pg.Pool({ connectionString: DATABASE_URL, connectionTimeoutMillis: 5000, max: 6 });
pool.on("error", () => {});
const publisher = kafkaPublisher(await clientOf(CLIENT, BROKERS), { sendTimeoutMs: 5000 });
startRelay(fromPg(pool), {
  publisher,
  leaseMs: 3000,
  heartbeatMs: 700,
  onParked: ({ topic, key, reason }) => console.log(`parked ${topic}/${key}: ${reason}`),
  logger: { info: () => {}, error: (message) => console.log(message) },
});
console.log("ready");
