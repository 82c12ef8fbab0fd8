import { createHash } from "node:crypto";

import { callOf, handlers, inTransaction } from "../handlers.mjs";

const lookUp = "select command_hash, status, body from seed_response where key = $1 and expires_at > now()";
const save = `insert into seed_response (key, command_hash, status, body, expires_at)
  values ($1, $2, $3, $4, now() + interval '48 hours') on conflict (key) do nothing`;

/**
 * The first seed's middleware, statement by statement: look up, run the handler in its transaction, save in a second one.
 * Two requests at once both run.
 * @type {import("../handlers.mjs").Variant}
 */
export function seedDesign(app, { pool, handler }) {
  app.post(`/${handler}`, async (request, reply) => {
    const call = callOf(request);
    const hash = createHash("sha256").update(JSON.stringify(request.body)).digest("hex");
    const { rows } = await pool.query(lookUp, [call.key]);
    const [known] = rows;
    if (known?.command_hash === hash) return reply.code(known.status).send(known.body);
    if (known !== undefined) return reply.code(409).send({ code: "idempotency_key_reused" });
    const payment = await inTransaction(pool, (client) => handlers[handler](client, call));
    const values = [call.key, hash, 201, JSON.stringify(payment)];
    await inTransaction(pool, (client) => client.query(save, values));
    return reply.code(201).send(payment);
  });
}
