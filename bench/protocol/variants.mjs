// The protocols that are compared: each does one command, the handler's insert and its record, over idemkit's own
// statement port, so that they differ in their statements alone.
import { randomUUID } from "node:crypto";

import { systemRuntime } from "../../dist/internal/runtime.js";

/** @typedef {import("idemkit").PostgresDatabase<import("pg").PoolClient>} Database */
/** @typedef {import("idemkit").Session<import("pg").PoolClient>} Session */
/** @typedef {(database: Database) => Promise<void>} Command */

const scope = "customer-1";
const operation = "charge";
const fingerprint = new Uint8Array(33).fill(7);
const body = Buffer.from(
  JSON.stringify({ id: "0197f3c2-1a5e-7cc0-8000-8f4be1cf0d2a", status: "pending", amount: "21.0000" }),
);
const retention = 72 * 3600;
/** The handler. */
export const payment = { name: "payment", text: "insert into payment (key, amount) values ($1, $2)" };

/** @param {string} key */
function paymentOf(key) {
  return { ...payment, values: [key, 21] };
}

const claim = {
  name: "bench-claim",
  text: `insert into claimed_record (scope, operation, key, operation_id, fingerprint, expires_at)
values ($1, $2, $3, $4, $5, now() + make_interval(secs => $6))
on conflict do nothing returning key`,
};

const answer = {
  name: "bench-answer",
  text: `update claimed_record set state = 'done', status = $4, headers = $5, body = $6
where scope = $1 and operation = $2 and key = $3`,
};

/** @param {string} key */
function claimOf(key) {
  return { ...claim, values: [scope, operation, key, systemRuntime.newId(), fingerprint, retention] };
}

/** @param {string} key */
function answerOf(key) {
  return { ...answer, values: [scope, operation, key, 201, "[]", body] };
}

/** @type {Command} no record at all: what the handler alone costs */
async function bare(database) {
  const { session } = await database.connections.begin(paymentOf(randomUUID()));
  await session.commit();
}

/** @type {Command} the claim is inserted first and updated with the answer, in one transaction */
async function claimThenUpdate(database) {
  const key = randomUUID();
  const { session } = await database.connections.begin(claimOf(key));
  await session.run(paymentOf(key));
  await session.commit(answerOf(key));
}

/** @type {Command} the claim commits first, so that others see it; then the handler and the answer in a second one */
async function insertFirst(database) {
  const key = randomUUID();
  await database.connections.query(claimOf(key));
  const { session } = await database.connections.begin(paymentOf(key));
  await session.commit(answerOf(key));
}

/** @type {Command} idemkit's: look-up and lock, the handler, the asserting insert with COMMIT */
async function assertingInsert(database) {
  const key = randomUUID();
  const operationId = systemRuntime.newId();
  const settings = { operationId, retentionMs: retention * 1000, idleTimeoutMs: 10_000, lockTimeoutMs: 5000 };
  const claimed = await database.records.claim({ scope, operation, key }, settings);
  if (claimed.claim !== "claimed") throw new Error(`a fresh key was ${claimed.claim}`);
  const { tx, finish } =
    /** @type {{ tx: import("pg").PoolClient, finish: typeof claimed.attempt.finish }} */ (claimed.attempt);
  await tx.query({ ...payment, values: [key, 21] });
  await finish({ operationId, fingerprint, disposition: "keep", status: 201, headers: [], body });
}

/** @type {Readonly<Record<string, Command>>} */
export const variants = { bare, claimThenUpdate, insertFirst, assertingInsert };
