import { idempotency } from "idemkit/fastify";
import { fromPg } from "idemkit/pg";

import { callOf, handlers } from "../handlers.mjs";

/** @type {import("../handlers.mjs").Variant} */
export function idemkit(app, { pool, handler }) {
  const idempotent = idempotency({ database: fromPg(pool), scope: (request) => callOf(request).customer });
  const options = { operation: `charge-${handler}`, retentionHours: 48 };
  app.post(
    `/${handler}`,
    idempotent(options, async (request, reply, { tx }) =>
      reply.code(201).send(await handlers[handler](tx, callOf(request))),
    ),
  );
}
