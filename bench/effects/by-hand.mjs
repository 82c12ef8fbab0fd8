// The external mode written by hand: the same guarantees, statement by statement, with nothing between.
import { createHash, randomUUID } from "node:crypto";

const claim = `
  insert into operation (scope, name, key, operation_id, fingerprint, state, attempt_id, lease_expires_at, command, expires_at)
  values ($1, 'charge', $2, $3, $4, 'running', $5, clock_timestamp() + interval '30 s', $6, 'infinity')
  on conflict (scope, name, key) do update set attempt_id = excluded.attempt_id, lease_expires_at = excluded.lease_expires_at
  where operation.state = 'running' and operation.lease_expires_at <= clock_timestamp()
    and operation.fingerprint = excluded.fingerprint
  returning operation_id`;
const find =
  "select state, answer, fingerprint from operation where scope = $1 and name = 'charge' and key = $2";
const fence = `
  with mine as (
    update operation set lease_expires_at = clock_timestamp() + interval '30 s'
    where scope = $1 and name = 'charge' and key = $2 and attempt_id = $3 and state = 'running'
    returning operation_id)`;
const intent = `${fence}
  insert into call (operation_id, name, derived_key, state)
  select operation_id, $4, $5, 'intent' from mine`;
const result = `${fence}
  update call set state = 'done', result = $5, ended_at = clock_timestamp() from mine
  where call.operation_id = mine.operation_id and call.name = $4`;
const finish = `
  update operation set state = 'keep', answer = $4, attempt_id = null, lease_expires_at = null, command = null,
    expires_at = now() + interval '24 hours'
  where scope = $1 and name = 'charge' and key = $2 and attempt_id = $3 and state = 'running'`;

/**
 * @param {import("pg").Pool} pool
 * @param {(key: string, amount: string) => Promise<{ chargeId: string }>} provider
 */
export function byHand(pool, provider) {
  /**
   * @param {string} scope
   * @param {string} key
   * @param {{ amount: string }} command
   */
  return async (scope, key, command) => {
    // The pool's own statements, prepared once on each connection.
    const run = (/** @type {string} */ name, /** @type {string} */ text, /** @type {unknown[]} */ values) =>
      pool.query({ name, text, values });
    const bytes = Buffer.from(JSON.stringify(command));
    const fingerprint = createHash("sha256").update(bytes).digest();
    const attemptId = randomUUID();
    const claimed = await run("claim", claim, [scope, key, randomUUID(), fingerprint, attemptId, bytes]);
    const operationId = /** @type {{ operation_id: string }[]} */ (claimed.rows)[0]?.operation_id;
    if (operationId === undefined) return known(await run("find", find, [scope, key]));
    const derived = createHash("sha256").update(`${operationId}\0charge`).digest("hex").slice(0, 40);
    const intended = await run("intent", intent, [scope, key, attemptId, "charge", derived]);
    if (intended.rowCount === 0) throw new Error("lost");
    const charge = await provider(derived, command.amount);
    const ended = await run("result", result, [
      scope,
      key,
      attemptId,
      "charge",
      Buffer.from(JSON.stringify(charge)),
    ]);
    if (ended.rowCount === 0) throw new Error("lost");
    return end(pool, { scope, key, attemptId, command, charge });
  };
}

/**
 * @param {import("pg").QueryResult} found
 * @returns {unknown}
 */
function known({ rows }) {
  const [row] = /** @type {{ state: string, answer: Buffer }[]} */ (rows);
  if (row?.state !== "keep") throw new Error("in progress");
  return JSON.parse(String(row.answer));
}

/**
 * @param {import("pg").Pool} pool
 * @param {{ scope: string, key: string, attemptId: string, command: { amount: string }, charge: { chargeId: string } }} operation
 */
async function end(pool, { scope, key, attemptId, command, charge }) {
  const client = await pool.connect();
  try {
    await client.query("begin");
    await client.query({
      name: "charge",
      text: "insert into charge (customer, amount, charge_id) values ($1, $2, $3)",
      values: [scope, command.amount, charge.chargeId],
    });
    const answer = { ...charge, amount: command.amount };
    const values = [scope, key, attemptId, Buffer.from(JSON.stringify(answer))];
    const finished = await client.query({ name: "finish", text: finish, values });
    if (finished.rowCount === 0) throw new Error("lost");
    await client.query("commit");
    return answer;
  } catch (error) {
    await client.query("rollback");
    throw error;
  } finally {
    client.release();
  }
}
