import { createHash, randomUUID, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";

import { callOf, handlers } from "../handlers.mjs";
import { fingerprintOf, lockOf } from "./handwritten-hashes.mjs";

/** @param {string} name */
function statement(name) {
  const file = new URL(`../../../../src/postgres/statements/${name}.sql`, import.meta.url);
  const text = readFileSync(file, "utf8")
    .replaceAll(/^--.*\n/gm, "")
    .replaceAll(':"schema"', "idemkit");
  return { name: `handwritten-${name}-${createHash("sha256").update(text).digest("hex").slice(0, 8)}`, text };
}

const claim = statement("claim");
const finish = statement("finish");
const retentionSeconds = 48 * 3600;
const contentType = "application/json; charset=utf-8";

/** @typedef {import("pg").PoolClient} Client */
/** @typedef {{ scope: string, operation: string, key: string, operationId: string, fingerprint: Buffer }} Identity */

/**
 * @param {Client} client
 * @param {Identity} identity
 */
async function begin(client, { scope, operation, key, operationId }) {
  const values = [
    scope,
    operation,
    key,
    lockOf("idemkit", scope, operation, key),
    "10000",
    operationId,
    "5000",
  ];
  const [, claimed] = await Promise.all([client.query("begin"), client.query({ ...claim, values })]);
  return claimed.rows[0];
}

/**
 * @param {Client} client
 * @param {Identity} identity
 * @param {Buffer} body
 */
async function commit(client, { scope, operation, key, operationId, fingerprint }, body) {
  const headers = JSON.stringify([["content-type", contentType]]);
  const values = [
    scope,
    operation,
    key,
    operationId,
    fingerprint,
    "keep",
    201,
    headers,
    body,
    retentionSeconds,
  ];
  const [, committed] = await Promise.all([client.query({ ...finish, values }), client.query("commit")]);
  if (committed.command !== "COMMIT") throw new Error("not committed");
}

/**
 * What a careful engineer would write into the handler: idemkit's own statements in the same flights, the same
 * fingerprint, the same columns stored; no guards, time-outs, retries, hooks, nor other frameworks.
 * @type {import("../handlers.mjs").Variant}
 */
export function handwritten(app, { pool, handler }) {
  app.post(`/${handler}`, async (request, reply) => {
    const call = callOf(request);
    const fingerprint = fingerprintOf(request.method, request.url, request.body);
    const operation = `charge-${handler}`;
    const identity = {
      scope: call.customer,
      operation,
      key: call.key,
      operationId: randomUUID(),
      fingerprint,
    };
    const client = await pool.connect();
    try {
      const row = await begin(client, identity);
      if (row.locked === true) {
        const body = Buffer.from(JSON.stringify(await handlers[handler](client, call)));
        await commit(client, identity, body);
        client.release();
        return await reply.code(201).header("content-type", contentType).send(body);
      }
      await client.query("rollback");
      client.release();
      return await answerRepeat(reply, row, fingerprint);
    } catch (error) {
      client.release(true);
      throw error;
    }
  });
}

/**
 * @param {import("fastify").FastifyReply} reply
 * @param {any} row
 * @param {Buffer} fingerprint
 */
function answerRepeat(reply, row, fingerprint) {
  if (row.locked === false) return reply.code(409).header("retry-after", "1").send({ code: "in_progress" });
  if (!timingSafeEqual(row.fingerprint, fingerprint)) return reply.code(409).send({ code: "reused" });
  return reply.code(row.status).headers(Object.fromEntries(row.headers)).send(row.body);
}
