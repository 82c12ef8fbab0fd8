// The business code that every variant runs. Plain statements, as most services send them.

/** @typedef {{ query(text: string, values?: unknown[]): Promise<{ rows: any[] }> }} Queryable */
/** @typedef {{ orderId: string, amount: string, currency: string }} Command */
/** @typedef {{ command: Command, customer: string, key: string }} Call */

const insertPayment = `insert into payment (account_id, order_id, amount, currency, idempotency_key)
  values ($1, $2, $3, $4, $5) returning id, created_at`;

/** @param {string} customer */
function accountOf(customer) {
  return Number(customer.slice("customer-".length));
}

/**
 * @param {Queryable} client
 * @param {Call} call
 */
async function chargeOne(client, { command, customer, key }) {
  const { orderId, amount, currency } = command;
  const { rows } = await client.query(insertPayment, [accountOf(customer), orderId, amount, currency, key]);
  return { id: rows[0].id, orderId, amount, currency, reference: key, createdAt: rows[0].created_at };
}

/**
 * @param {Queryable} client
 * @param {Call} call
 */
async function chargeFive(client, call) {
  const account = accountOf(call.customer);
  const { amount } = call.command;
  await client.query("select status from account where id = $1", [account]);
  const payment = await chargeOne(client, call);
  const entry = "insert into ledger_entry (payment_id, account_id, amount) values ($1, $2, $3)";
  await client.query(entry, [payment.id, account, `-${amount}`]);
  await client.query(entry, [payment.id, 0, amount]);
  await client.query("insert into audit_entry (payment_id, what) values ($1, $2)", [payment.id, "charged"]);
  return payment;
}

/** @type {Readonly<Record<"one" | "five", (client: Queryable, call: Call) => Promise<object>>>} */
export const handlers = { one: chargeOne, five: chargeFive };

/** @typedef {keyof typeof handlers} HandlerName */

/**
 * Declares the route of one variant for one handler.
 * @typedef {(app: import("fastify").FastifyInstance, setting: Setting) => void | Promise<void>} Variant
 */

/**
 * @typedef {object} Setting
 * @property {import("pg").Pool} pool
 * @property {HandlerName} handler
 */

/**
 * @template T
 * @param {import("pg").Pool} pool
 * @param {(client: import("pg").PoolClient) => Promise<T>} work
 */
export async function inTransaction(pool, work) {
  const client = await pool.connect();
  try {
    await client.query("begin");
    const value = await work(client);
    await client.query("commit");
    client.release();
    return value;
  } catch (error) {
    client.release(true);
    throw error;
  }
}

/**
 * How a service without any protection runs them: one statement alone, five in a transaction.
 * @param {import("pg").Pool} pool
 * @param {HandlerName} name
 * @param {Call} call
 */
export function runBare(pool, name, call) {
  if (name === "one") return handlers.one(pool, call);
  return inTransaction(pool, (client) => handlers.five(client, call));
}

/**
 * @param {import("fastify").FastifyRequest} request
 * @returns {Call}
 */
export function callOf(request) {
  return {
    command: /** @type {Command} */ (request.body),
    customer: String(request.headers["x-customer"]),
    key: String(request.headers["idempotency-key"]),
  };
}
