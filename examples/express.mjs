// An existing Express application with one protected route. Run it with DATABASE_URL and PORT set.
import express from "express";
import { migrate, startMaintenance } from "idemkit";
import { idempotency } from "idemkit/express";
import { fromPg } from "idemkit/pg";
import pg from "pg";

const app = express();
app.use(express.json());
const pool = new pg.Pool({
  connectionString: process.env.DATABASE_URL,
  connectionTimeoutMillis: 5000,
  pipeline: true,
});
pool.on("error", (error) => console.warn(error.message));
await pool.query(
  "create table if not exists payment (id uuid primary key, payer text, amount numeric(19,4))",
);

// #region protect
const database = fromPg(pool);
await migrate(database);
const maintenance = startMaintenance(database);
const idempotent = idempotency({ database, scope: (req) => req.get("x-customer") });

app.post(
  "/payments",
  idempotent({ operation: "charge" }, async (req, res, { tx, operationId }) => {
    const { payer, amount } = req.body;
    await tx.query("insert into payment values ($1, $2, $3)", [operationId, payer, amount]);
    res.status(201).json({ id: operationId, payer, amount });
  }),
);
// #endregion

const server = app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${server.address().port}`);
});
process.once("SIGTERM", () => {
  server.close(async () => {
    await maintenance.stop();
    await pool.end();
  });
  server.closeIdleConnections();
});
