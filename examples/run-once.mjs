// The same guarantee below HTTP: a use-case handler that makes an order once. Run it with DATABASE_URL set.
import { migrate, refuse, runOnce, valueOf } from "idemkit";
import { fromPg } from "idemkit/pg";
import pg from "pg";

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, connectionTimeoutMillis: 5000 });
const database = fromPg(pool);
await migrate(database);
await pool.query(
  "create table if not exists customer_order (id uuid primary key, customer text, total numeric(19,4))",
);

// #region run-once
async function createOrder(customer, key, command) {
  const outcome = await runOnce(
    database,
    { scope: customer, operation: "create-order", key, command, retentionHours: 72 },
    async ({ tx, operationId }) => {
      if (command.items.length === 0) throw refuse({ reason: "no-items" });
      const order = { id: operationId, customer, total: command.total };
      await tx.query("insert into customer_order values ($1, $2, $3)", [order.id, customer, order.total]);
      return order;
    },
  );
  console.log(outcome.outcome);
  return valueOf(outcome);
}
// #endregion

const command = { items: ["book"], total: "12.50" };
const first = await createOrder("alice", "order-1", command);
const second = await createOrder("alice", "order-1", command);
console.log(first.id === second.id ? "one order" : "two orders");
await createOrder("alice", "order-1", { items: [], total: "0" }).catch((error) => console.log(error.code));
await pool.end();
