// What two tempting changes of the claim would cost: locking before reading, and reading the record inside a serializable
// transaction. The statements are idemkit's own, changed in one place.
import { randomUUID } from "node:crypto";

import { fromPg } from "idemkit/pg";
import pg from "pg";

import { statementOf } from "../../dist/postgres/statement.js";
import { payment } from "./variants.mjs";

/** @typedef {import("idemkit").PostgresDatabase<pg.PoolClient>} Database */
/** @typedef {{ name: string, text: string }} Statement */

const identity = ["customer-1", "charge"];
const body = Buffer.from("{}");
const fingerprint = new Uint8Array(33).fill(7);

/** @param {string} connectionString @param {number} max */
function poolOf(connectionString, max) {
  return new pg.Pool({ connectionString, max, connectionTimeoutMillis: 60_000 });
}

/** @param {string} key @param {string} lock */
function claimValues(key, lock) {
  return [...identity, key, lock, "10000", randomUUID(), "5000"];
}

/**
 * @param {Database} database
 * @param {string} key
 * @param {string} operationId
 * @param {import("idemkit").Session<pg.PoolClient>} session
 */
async function finish(database, key, operationId, session) {
  const values = [...identity, key, operationId, fingerprint, "keep", 201, "[]", body, 259_200];
  await session.commit({ ...statementOf("finish", database.schema), values });
}

/**
 * 1,600 repeats of one finished key at once: how many are told "in progress"?
 * @param {string} connectionString
 */
export async function replaysLockedOut(connectionString) {
  const pool = poolOf(connectionString, 32);
  const database = fromPg(pool);
  const key = randomUUID();
  const asIs = statementOf("claim", database.schema);
  const lockFirst = {
    name: "bench-lock-first",
    text: asIs.text.replace(/case when x\.key is null then (pg_try_advisory_xact_lock\(.*?\)) end/, "$1"),
  };
  const values = claimValues(key, "42");
  const { session } = await database.connections.begin({ ...asIs, values });
  await finish(database, key, values[5] ?? "", session);
  /** @param {Statement} claim */
  const lockedOut = async (claim) => {
    const answers = await Promise.all(
      Array.from({ length: 1600 }, async () => {
        const begun = await database.connections.begin({ ...claim, values: claimValues(key, "42") });
        await begun.session.rollback();
        const [{ locked } = { locked: undefined }] = begun.first.rows;
        return locked;
      }),
    );
    return answers.filter((locked) => locked === false).length;
  };
  const result = { lockingFirst: await lockedOut(lockFirst), readingFirst: await lockedOut(asIs) };
  await pool.end();
  return result;
}

/**
 * Commands of different keys under SERIALIZABLE: how many commit, and how many are aborted?
 * @param {string} connectionString
 * @param {{ clients: number, seconds: number }} load
 */
export async function serializableAborts(connectionString, { clients, seconds }) {
  const pool = poolOf(connectionString, clients);
  const database = fromPg(pool);
  const [inside, outside] = [
    statementOf("claim", database.schema),
    statementOf("claim-unread", database.schema),
  ];
  const find = statementOf("find", database.schema);
  /** @param {boolean} readInside */
  const command = async (readInside) => {
    const key = randomUUID();
    const lock = String(BigInt.asIntN(64, BigInt(`0x${key.slice(0, 8)}${key.slice(9, 13)}`)));
    const values = claimValues(key, lock);
    if (!readInside) await database.connections.query({ ...find, values: [...identity, key] });
    const first = readInside ? { ...inside, values } : { ...outside, values: values.slice(3) };
    const { session } = await database.connections.begin(first, "serializable");
    await session.run({ ...payment, values: [key, 21] });
    await finish(database, key, values[5] ?? "", session);
  };
  /** @param {boolean} readInside */
  const count = async (readInside) => {
    // A young table: its few pages are what the transactions' reads have in common.
    await pool.query("truncate idemkit.idempotency_record");
    const counts = { commits: 0, aborts: 0 };
    const until = performance.now() + seconds * 1000;
    const client = async () => {
      while (performance.now() < until) {
        await command(readInside).then(
          () => (counts.commits += 1),
          () => (counts.aborts += 1),
        );
      }
    };
    await Promise.all(Array.from({ length: clients }, client));
    return counts;
  };
  const result = { readInside: await count(true), readOutside: await count(false) };
  await pool.end();
  return result;
}
