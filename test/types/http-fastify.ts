// Checked by tsc alone: a line that fails here is inference that was lost.
import { expectTypeOf } from "expect-type";
import fastify from "fastify";
import type { FastifyReply, FastifyRequest } from "fastify";
import { idempotency, requireIdempotencyKey } from "idemkit/fastify";
import { fromPg } from "idemkit/pg";
import type { Pool, PoolClient } from "pg";

declare const pool: Pool;

const app = fastify();
const idempotent = idempotency({
  database: fromPg(pool),
  scope: (request) => {
    expectTypeOf(request).toEqualTypeOf<FastifyRequest>();
    return request.ip;
  },
});

interface ChargeRoute {
  Body: { amount: string };
  Params: { id: string };
  Reply: { id: string };
}

app.post<ChargeRoute>(
  "/orders/:id",
  idempotent(
    { operation: "generics" },
    async (request, reply, { tx, key, operationId, signal, notFinal }) => {
      expectTypeOf(request.body).toEqualTypeOf<{ amount: string }>();
      expectTypeOf(request.params).toEqualTypeOf<{ id: string }>();
      expectTypeOf(tx).toEqualTypeOf<PoolClient>();
      expectTypeOf(key).toEqualTypeOf<string>();
      expectTypeOf(operationId).toEqualTypeOf<string>();
      expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
      expectTypeOf(notFinal).toEqualTypeOf<() => void>();
      return reply.send({ id: "1" });
    },
  ),
);

app.post<ChargeRoute>(
  "/replies/:id",
  idempotent({ operation: "reply" }, async (_request, reply) => {
    // @ts-expect-error -- the reply's type is the route's
    return reply.send({ id: 1 });
  }),
);

app.post(
  "/optional",
  idempotent({ operation: "optional", key: "optional" }, async (_request, _reply, { key }) => {
    expectTypeOf(key).toEqualTypeOf<string | undefined>();
  }),
);

// A type provider's inference does not reach through a second generic call: there the handler names its request.
app.post(
  "/named",
  idempotent({ operation: "named" }, async (request: FastifyRequest<ChargeRoute>, _reply, { tx }) => {
    expectTypeOf(request.body).toEqualTypeOf<{ amount: string }>();
    expectTypeOf(tx).toEqualTypeOf<PoolClient>();
  }),
);

const alone = idempotent({ operation: "alone" }, async function alone(request, reply) {
  expectTypeOf(request).toEqualTypeOf<FastifyRequest>();
  expectTypeOf(reply).toEqualTypeOf<FastifyReply>();
  expectTypeOf(this.listen).toEqualTypeOf<typeof app.listen>();
});
app.post("/alone", alone);

app.post<ChargeRoute>(
  "/keyed/:id",
  requireIdempotencyKey(async (request, _reply, { key }) => {
    expectTypeOf(request.body).toEqualTypeOf<{ amount: string }>();
    expectTypeOf(key).toEqualTypeOf<string>();
  }),
);

// @ts-expect-error -- the scope can't be left out
idempotency({ database: fromPg(pool) });
// @ts-expect-error -- unless it is said to be shared
idempotency({ database: fromPg(pool), scope: "everybody" });
// @ts-expect-error -- an option that doesn't exist
idempotent({ operation: "unknown", retention: 48 }, async () => {});
