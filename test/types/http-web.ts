// Checked by tsc alone: a line that fails here is inference that was lost.
import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";

import { expectTypeOf } from "expect-type";
import { Hono } from "hono";
import { validator } from "hono/validator";
import { idempotency as fetchIdempotency } from "idemkit/fetch";
import { idempotency as honoIdempotency, requireIdempotencyKey } from "idemkit/hono";
import { idempotency as nodeIdempotency } from "idemkit/node";
import { fromPg } from "idemkit/pg";
import type { Pool, PoolClient } from "pg";

declare const pool: Pool;
const database = fromPg(pool);

const honoIdempotent = honoIdempotency({ database, scope: (c) => c.req.path });
const hono = new Hono<{ Variables: { principal: string } }>();
hono.post(
  "/orders/:id",
  validator("json", (value) => value as { amount: string }),
  honoIdempotent({ operation: "hono" }),
  (c) => {
    expectTypeOf(c.var.once.tx).toEqualTypeOf<PoolClient>();
    expectTypeOf(c.var.once.key).toEqualTypeOf<string>();
    expectTypeOf(c.var.principal).toEqualTypeOf<string>();
    expectTypeOf(c.req.param("id")).toEqualTypeOf<string>();
    expectTypeOf(c.req.valid("json")).toEqualTypeOf<{ amount: string }>();
    return c.json({ id: "1" }, 201);
  },
);
hono.post("/optional", honoIdempotent({ operation: "optional", key: "optional" }), (c) => {
  expectTypeOf(c.var.once.key).toEqualTypeOf<string | undefined>();
  return c.body(null);
});
hono.post("/keyed", requireIdempotencyKey(), (c) => {
  expectTypeOf(c.var.idempotencyKey).toEqualTypeOf<string>();
  return c.body(null);
});
const fetchIdempotent = fetchIdempotency({ database, scope: "shared" });
const handler = fetchIdempotent({ operation: "fetch" }, (request, { tx, key }) => {
  expectTypeOf(request).toEqualTypeOf<Request>();
  expectTypeOf(tx).toEqualTypeOf<PoolClient>();
  expectTypeOf(key).toEqualTypeOf<string>();
  return new Response();
});
expectTypeOf(handler).toEqualTypeOf<(request: Request) => Promise<Response>>();
// @ts-expect-error -- a handler of the fetch style returns a response
fetchIdempotent({ operation: "value" }, async () => ({ id: "1" }));

const nodeIdempotent = nodeIdempotency({ database, scope: (req) => String(req.headers["x-principal"]) });
const nodeHandler = nodeIdempotent({ operation: "node" }, (req, res, { tx, body }) => {
  expectTypeOf(req).toEqualTypeOf<IncomingMessage>();
  expectTypeOf(res).toEqualTypeOf<ServerResponse>();
  expectTypeOf(tx).toEqualTypeOf<PoolClient>();
  expectTypeOf(body).toEqualTypeOf<unknown>();
});
createServer((req, res) => void nodeHandler(req, res));
const http2Handler = nodeIdempotent<Http2ServerRequest, Http2ServerResponse>(
  { operation: "http2" },
  (req, res) => {
    expectTypeOf(req).toEqualTypeOf<Http2ServerRequest>();
    expectTypeOf(res).toEqualTypeOf<Http2ServerResponse>();
  },
);
createHttp2Server((req, res) => void http2Handler(req, res));
