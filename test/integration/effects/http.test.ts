import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import type { RequestListener, Server } from "node:http";
import type { AddressInfo } from "node:net";

import { serve } from "@hono/node-server";
import express from "express";
import Fastify from "fastify";
import { Hono } from "hono";
import { absent, done, resolveEffect, unknown } from "idemkit";
import type { OnceWithEffects, Stored } from "idemkit";
import { idempotency as expressIdempotency } from "idemkit/express";
import { idempotency as fastifyIdempotency } from "idemkit/fastify";
import { idempotency as fetchIdempotency } from "idemkit/fetch";
import { idempotency as honoIdempotency } from "idemkit/hono";
import { idempotency as nodeIdempotency } from "idemkit/node";
import { fromPg } from "idemkit/pg";
import type { Pool, PoolClient } from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";

import { createDatabase } from "../../support/index.ts";
import type { TestDatabase } from "../../support/index.ts";
import { provider } from "./provider.ts";
import type { Provider } from "./provider.ts";

let created: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  created = await createDatabase();
  pool = created.pool({ max: 5 });
  await pool.query("create table charge (operation_id uuid primary key)");
});
afterAll(() => created.drop());

type Charge = (once: OnceWithEffects<PoolClient>) => Promise<Stored<{ readonly chargeId: string }>>;
const options = { operation: "charge", retentionHours: 24 };

function charging(psp: Provider, canLookUp: boolean): Charge {
  return async ({ effect, transaction, operationId }) => {
    const charged = await effect("charge", {
      run: ({ key }) => psp.charge(key, 7),
      recover: async ({ key }) => {
        const found = await psp.lookUp(key);
        if (!canLookUp) return unknown;
        return found === undefined ? absent : done(found);
      },
      deadlineMs: 500,
      graceMs: 0,
    });
    await transaction((tx) => tx.query("insert into charge values ($1)", [operationId]));
    return charged;
  };
}

interface Served {
  readonly url: string;
  close(): Promise<unknown>;
}

const listen = async (server: Server): Promise<Served> => {
  if (!server.listening) await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const close = (): Promise<unknown> => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return { url: `http://127.0.0.1:${port}/charges`, close };
};

const binding = () => ({ database: fromPg(pool), scope: () => "alice" });
const bindings: Record<string, (charge: Charge) => Promise<Served>> = {
  fastify: async (charge) => {
    const app = Fastify();
    const { withEffects } = fastifyIdempotency(binding());
    app.post(
      "/charges",
      withEffects(options, async (_request, reply, once) => reply.code(201).send(await charge(once))),
    );
    await app.listen({ port: 0, host: "127.0.0.1" });
    return { ...(await listen(app.server)), close: () => app.close() };
  },
  express: (charge) => {
    const app = express().use(express.json());
    const { withEffects } = expressIdempotency(binding());
    app.post(
      "/charges",
      withEffects(options, async (_req, res, once) => void res.status(201).json(await charge(once))),
    );
    return listen(createServer(app as RequestListener));
  },
  hono: (charge) => {
    const { withEffects } = honoIdempotency(binding());
    const app = new Hono().onError((_error, c) => c.text("failed", 500));
    app.post("/charges", withEffects(options), async (c) => c.json(await charge(c.var.once), 201));
    return listen(serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }) as Server);
  },
  fetch: (charge) => {
    const { withEffects } = fetchIdempotency(binding());
    const handler = withEffects(options, async (_request, once) =>
      Response.json(await charge(once), { status: 201 }),
    );
    return listen(serve({ fetch: handler, port: 0, hostname: "127.0.0.1" }) as Server);
  },
  node: (charge) => {
    const { withEffects } = nodeIdempotency(binding());
    const handler = withEffects(options, async (_req, res, once) => {
      const charged = await charge(once);
      res.statusCode = 201;
      res.setHeader("content-type", "application/json");
      res.end(JSON.stringify(charged));
    });
    return listen(createServer((req, res) => void handler(req, res)));
  },
};

describe.each(Object.entries(bindings))("withEffects of %s", (_name, start) => {
  let served: Served;
  afterEach(() => served.close());

  async function post(key: string, amount = 7) {
    const response = await fetch(served.url, {
      method: "POST",
      headers: { "idempotency-key": key, "content-type": "application/json" },
      body: JSON.stringify({ amount }),
    });
    const body = (await response.json()) as Record<string, unknown>;
    return { status: response.status, replayed: response.headers.get("idempotent-replayed"), body };
  }

  test("charges once, finds out about a lost answer, and replays", async () => {
    const psp = provider({ honoursKeys: false, faults: ["after"] });
    served = await start(charging(psp, true));
    const key = randomUUID();
    const first = await post(key);
    expect(first).toMatchObject({ status: 201, replayed: null });
    expect(await post(key)).toEqual({ ...first, replayed: "true" });
    expect(await post(key, 8)).toMatchObject({ status: 409, body: { code: "idempotency_key_reused" } });
    expect(psp.total()).toBe(1);
  });

  test("answers 409 while the outcome is unknown, and goes on when it is resolved by hand", async () => {
    const psp = provider({ honoursKeys: false, faults: ["after"] });
    served = await start(charging(psp, false));
    const key = randomUUID();
    const told = await post(key);
    expect(told).toMatchObject({ status: 409, body: { code: "operation_uncertain", retry: "stop" } });
    expect(await post(key)).toEqual(told);
    const operationId = String(told.body["operation_id"]);
    await resolveEffect(fromPg(pool), operationId, {
      effect: "charge",
      as: "done",
      result: { chargeId: "by-hand" },
    });
    expect(await post(key)).toMatchObject({ status: 201, body: { chargeId: "by-hand" } });
    expect(psp.total()).toBe(1);
  });
});
