import { callOf, runBare } from "../handlers.mjs";

/** The handler alone: what a repeat costs is another payment. @type {import("../handlers.mjs").Variant} */
export function bare(app, { pool, handler }) {
  app.post(`/${handler}`, async (request, reply) =>
    reply.code(201).send(await runBare(pool, handler, callOf(request))),
  );
}
