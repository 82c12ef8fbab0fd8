// Checked by tsc alone: a line that fails here is inference that was lost.
import { expectTypeOf } from "expect-type";
import express from "express";
import type { Request, Response } from "express";
import { idempotency, requireIdempotencyKey } from "idemkit/express";
import { fromPg } from "idemkit/pg";
import type { Pool, PoolClient } from "pg";

declare const pool: Pool;

const app = express();
const idempotent = idempotency({
  database: fromPg(pool),
  scope: (req) => {
    expectTypeOf(req).toEqualTypeOf<Request>();
    return String(req.ip);
  },
});

app.post(
  "/orders/:id/payments/:payment",
  idempotent({ operation: "path" }, (req, res, { tx, key }) => {
    // TypeScript does not read a path through a second generic call: what the path names, the route may say itself.
    expectTypeOf(req).toEqualTypeOf<Request>();
    expectTypeOf(res.locals).not.toBeNever();
    expectTypeOf(tx).toEqualTypeOf<PoolClient>();
    expectTypeOf(key).toEqualTypeOf<string>();
  }),
);

app.post<{ id: string }, { ok: boolean }, { amount: string }>(
  "/generic/:id",
  idempotent({ operation: "generic" }, (req, res) => {
    expectTypeOf(req.params).toEqualTypeOf<{ id: string }>();
    expectTypeOf(req.body).toEqualTypeOf<{ amount: string }>();
    res.json({ ok: true });
    // @ts-expect-error -- the response's type is the route's
    res.json({ ok: "yes" });
  }),
);

app.post(
  "/optional",
  idempotent({ operation: "optional", key: "optional" }, (_req, _res, { key }) => {
    expectTypeOf(key).toEqualTypeOf<string | undefined>();
  }),
);

interface Authenticated extends Request {
  readonly principal: string;
}
const own = idempotent({ operation: "own" }, (req: Authenticated, res) => {
  expectTypeOf(req.principal).toEqualTypeOf<string>();
  expectTypeOf(res).toEqualTypeOf<Response>();
});
expectTypeOf(own).parameter(0).toEqualTypeOf<Authenticated>();

app.post<{ id: string }>(
  "/keyed/:id",
  requireIdempotencyKey((req, _res, { key }) => {
    expectTypeOf(req.params).toEqualTypeOf<{ id: string }>();
    expectTypeOf(key).toEqualTypeOf<string>();
  }),
);
