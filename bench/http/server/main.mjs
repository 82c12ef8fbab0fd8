// One variant, a process of its own, so that none runs on code that another has warmed up or spoilt.
import fastify from "fastify";
import pg from "pg";

import { serve } from "../rpc.mjs";
import { handlers } from "./handlers.mjs";
import { countStatements } from "./statements.mjs";
import { variants } from "./variants/index.mjs";

const [name = "", connectionString, poolSize] = process.argv.slice(2);
const declare = variants[name];
if (declare === undefined) {
  throw new Error(`no variant ${name}: there are ${Object.keys(variants).join(", ")}`);
}

const statements = countStatements();
const pool = new pg.Pool({
  connectionString,
  max: Number(poolSize),
  connectionTimeoutMillis: 10_000,
  idleTimeoutMillis: 0,
  pipeline: true,
});
pool.on("error", () => {}); // a server that goes away ends idle clients; the next query tells

const app = fastify();
for (const handler of /** @type {(keyof typeof handlers)[]} */ (Object.keys(handlers))) {
  await declare(app, { pool, handler });
}
const address = await app.listen({ port: 0, host: "127.0.0.1" });

serve({
  port: () => Number(new URL(address).port),
  usage: () => ({ statements: statements.count, cpuMs: cpuMs() }),
  close: async () => {
    await app.close();
    await pool.end();
  },
});

function cpuMs() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
