import { createHash } from "node:crypto";

import { callOf, runBare } from "../handlers.mjs";

const lookUp = "select command_hash, status, body from seed_response where key = $1 and expires_at > now()";
const save = `insert into seed_response (key, command_hash, status, body, expires_at)
  values ($1, $2, $3, $4, now() + interval '48 hours') on conflict (key) do nothing`;

/**
 * The first seed's middleware: look up, run the handler, save in a second transaction. Two requests at once both run.
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
    const payment = await runBare(pool, handler, call);
    await pool.query(save, [call.key, hash, 201, JSON.stringify(payment)]);
    return reply.code(201).send(payment);
  });
}
