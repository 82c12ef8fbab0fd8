import { importPeer } from "../../peers.mjs";
import { callOf, runBare } from "../handlers.mjs";

const take = `insert into peer_record (key, data, expires_at) values ($1, $2, now() + $3 * interval '1 millisecond')
  on conflict (key) do update set data = excluded.data, expires_at = excluded.expires_at
  where peer_record.expires_at < now()`;
const put = `insert into peer_record (key, data, expires_at) values ($1, $2, now() + $3 * interval '1 millisecond')
  on conflict (key) do update set data = excluded.data, expires_at = excluded.expires_at`;
const look = "select data from peer_record where key = $1 and expires_at > now()";

/**
 * The package's storage interface on the same PostgreSQL, in a logged table. Its own adapter for PostgreSQL sends the
 * same three statements, to an unlogged table by default, whose rows are gone after a crash.
 * @param {import("pg").Pool} pool
 */
function storageOn(pool) {
  return {
    /** @type {(key: string, value: string, options: { ttl?: number }) => Promise<boolean>} */
    setIfNotExists: async (key, value, { ttl }) => (await pool.query(take, [key, value, ttl])).rowCount === 1,
    /** @type {(key: string, value: string, options: { ttl?: number }) => Promise<void>} */
    set: async (key, value, { ttl }) => void (await pool.query(put, [key, value, ttl])),
    /** @type {(key: string) => Promise<string | undefined>} */
    get: async (key) => (await pool.query(look, [key])).rows[0]?.data,
  };
}

/** `@node-idempotency/core`, called as its own plugin for Fastify does. @type {import("../handlers.mjs").Variant} */
export async function nodeIdempotency(app, { pool, handler }) {
  const { Idempotency } = await importPeer("@node-idempotency/core");
  const idempotency = new Idempotency(storageOn(pool), { cacheTTLMS: 48 * 3600 * 1000 });
  app.post(`/${handler}`, async (request, reply) => {
    const { headers, body, url: path, method } = request;
    const asked = { headers, body, path, method };
    let known;
    try {
      known = await idempotency.onRequest(asked);
    } catch (error) {
      return reply.code(409).send({ code: error instanceof Error ? error.message : String(error) });
    }
    if (known !== undefined) return reply.code(known.additional.statusCode).send(known.body);
    const payment = await runBare(pool, handler, callOf(request));
    await idempotency.onResponse(asked, { additional: { statusCode: 201 }, body: payment });
    return reply.code(201).send(payment);
  });
}
