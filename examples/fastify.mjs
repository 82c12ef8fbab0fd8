// An existing Fastify application with one protected route. Run it with DATABASE_URL and PORT set.
import Fastify from "fastify";
import { migrate, startMaintenance } from "idemkit";
import { idempotency } from "idemkit/fastify";
import { fromPg } from "idemkit/pg";
import pg from "pg";

const app = Fastify();
const pool = new pg.Pool({
  connectionString: process.env.DATABASE_URL,
  connectionTimeoutMillis: 5000,
  pipeline: true,
});
pool.on("error", (error) => app.log.warn(error));
await pool.query(
  "create table if not exists payment (id uuid primary key, payer text, amount numeric(19,4))",
);

// #region protect
const database = fromPg(pool);
await migrate(database);
const maintenance = startMaintenance(database);
const idempotent = idempotency({ database, scope: (request) => request.headers["x-customer"] });

app.post(
  "/payments",
  idempotent({ operation: "charge" }, async (request, reply, { tx, operationId }) => {
    const { payer, amount } = request.body;
    await tx.query("insert into payment values ($1, $2, $3)", [operationId, payer, amount]);
    return reply.code(201).send({ id: operationId, payer, amount });
  }),
);
// #endregion

app.addHook("onClose", async () => {
  await maintenance.stop();
  await pool.end();
});
process.once("SIGTERM", () => app.close());
console.log(await app.listen({ port: Number(process.env.PORT ?? 3000), host: "127.0.0.1" }));
