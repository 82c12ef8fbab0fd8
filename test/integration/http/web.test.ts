import { Hono } from "hono";
import type { Context } from "hono";
import { HTTPException } from "hono/http-exception";
import { stream } from "hono/streaming";
import { validator } from "hono/validator";
import { idempotency as fetchIdempotency, requireIdempotencyKey as fetchKey } from "idemkit/fetch";
import { idempotency, requireIdempotencyKey } from "idemkit/hono";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { listening } from "./apps/framework.ts";
import type { App } from "./apps/index.ts";
import { webServer } from "./apps/web-apps.ts";
import { call } from "./client.ts";
import type { Answer } from "./client.ts";
import { pay } from "./scenarios.ts";
import { createService } from "./service.ts";
import type { Service } from "./service.ts";
import { newKey } from "./suite.ts";

describe("Hono", () => {
  let service: Service;
  let app: App;

  beforeAll(async () => {
    service = await createService();
    const idempotent = idempotency({ database: service.database, scope: "shared" });
    const api = new Hono();
    api.use(async (c, next) => {
      c.header("x-before", "1");
      await next();
      c.header("x-after", "1");
    });
    const inner = new Hono();
    inner.onError((error, c) => c.json({ inner: error.message }, 418));
    inner.post("/nested", idempotent({ operation: "nested" }), async (c) => {
      await pay(c.var.once, "nested");
      throw new Error("inside");
    });
    api.route("/", inner);
    api.post("/exception", idempotent({ operation: "exception" }), async (c) => {
      await pay(c.var.once, "exception");
      c.header("x-handler", "1");
      throw new HTTPException(422, { message: "refused" });
    });
    api.post(
      "/validated",
      validator("json", (value) => value as { a: number }),
      idempotent({ operation: "validated" }),
      async (c) => {
        await pay(c.var.once, "validated");
        return c.json({ seen: c.req.valid("json"), again: await c.req.json<unknown>() }, 201);
      },
    );
    api.post("/form", idempotent({ operation: "form" }), async (c) => {
      await pay(c.var.once, "form");
      return c.json(await c.req.parseBody());
    });
    api.post("/streams", idempotent({ operation: "streams" }), async (c) => {
      await pay(c.var.once, "streams");
      return stream(c, async (out) => {
        await out.write("one ");
        await out.write("two");
      });
    });
    api.post("/nothing", idempotent({ operation: "nothing" }), async (c) => {
      await pay(c.var.once, "nothing");
      const nothing: unknown = undefined;
      return nothing as Response;
    });
    api.post("/large", idempotent({ operation: "large", maxRequestBytes: 100 }), (c) => c.json({}));
    api.post("/keyed", requireIdempotencyKey(), (c) => c.json({ key: c.var.idempotencyKey }));
    app = await listening(webServer(api.fetch));
  });
  afterAll(async () => {
    await app.close();
    await service[Symbol.asyncDispose]();
  });

  const post = (name: string, key: string, options = {}): Promise<Answer> =>
    call(`${app.url}/${name}`, { key, body: { a: 1 }, ...options });

  test.each([
    ["nested", 418, '{"inner":"inside"}', 0],
    ["exception", 422, "refused", 0],
    ["validated", 201, '{"seen":{"a":1},"again":{"a":1}}', 1],
    ["streams", 200, "one two", 1],
  ])("keeps or refuses %s, with headers of middleware around it", async (name, status, text, payments) => {
    const key = newKey("hono");
    const first = await post(name, key);
    const second = await post(name, key);
    expect([first.status, first.text]).toEqual([status, text]);
    expect([second.status, second.text]).toEqual([status, text]);
    expect(second.headers["idempotent-replayed"]).toBe("true");
    for (const answer of [first, second]) {
      expect([answer.headers["x-before"], answer.headers["x-after"]]).toEqual(["1", "1"]);
    }
    expect(await service.payments(key)).toBe(payments);
  });

  test("leaves a form to the handler", async () => {
    const key = newKey("hono");
    const form = { body: "a=1&b=2", headers: { "content-type": "application/x-www-form-urlencoded" } };
    expect((await post("form", key, form)).json()).toEqual({ a: "1", b: "2" });
    expect((await post("form", key, form)).headers["idempotent-replayed"]).toBe("true");
    expect((await post("form", key, { ...form, body: "a=1&b=3" })).status).toBe(409);
  });

  test("discards the run of a handler that returns nothing", async () => {
    const key = newKey("hono");
    expect((await post("nothing", key)).status).toBe(500);
    expect(await service.payments(key)).toBe(0);
  });

  test("refuses a body that is too large", async () => {
    const answer = await post("large", newKey("hono"), { body: "x".repeat(101) });
    expect([answer.status, answer.json()["code"]]).toEqual([413, "command_too_large"]);
    const chunked = { "content-length": [], "transfer-encoding": "chunked" };
    const second = await post("large", newKey("hono"), { body: "x".repeat(101), headers: chunked });
    expect([second.status, second.json()["code"]]).toEqual([413, "command_too_large"]);
  });

  test("demands a key where only that is asked for", async () => {
    expect((await call(`${app.url}/keyed`, { key: "k-1" })).json()).toEqual({ key: "k-1" });
    const missing = await call(`${app.url}/keyed`);
    expect(missing.json()["code"]).toBe("idempotency_key_missing");
    expect(missing.headers["x-before"]).toBe("1");
  });

  test("takes the scope from the context", async () => {
    const scoped = idempotency({
      database: service.database,
      scope: (c: Context) => c.req.header("x-principal") ?? "",
    });
    const api = new Hono();
    api.post("/scoped", scoped({ operation: "scoped" }), (c) => c.json({}));
    const answer = await api.request("/scoped", {
      method: "POST",
      headers: { "idempotency-key": newKey("hono") },
    });
    expect(answer.status).toBe(500);
  });
});

describe("a fetch-style handler", () => {
  let service: Service;
  beforeAll(async () => {
    service = await createService();
  });
  afterAll(async () => {
    await service[Symbol.asyncDispose]();
  });

  const amountIn = async (each: Request): Promise<string> =>
    new URLSearchParams(await each.text()).get("amount") ?? "";
  const request = (key: string, body = "{}"): Request =>
    new Request("https://shop.example/payments?a=1", {
      method: "POST",
      headers: { "idempotency-key": key, "content-type": "application/json" },
      body,
    });

  test("gets the caller's own request, unread, and a fresh one for another run", async () => {
    const seen: { own: boolean; text: string }[] = [];
    const given = request(newKey("fetch"), '{"a": 1}');
    const handler = fetchIdempotency({ database: service.database, scope: "shared" })(
      { operation: "own" },
      async (each, { tx }) => {
        seen.push({ own: each === given, text: await each.text() });
        if (seen.length === 1) await tx.query("select serialization_failure()");
        return new Response("done", { status: 201 });
      },
    );
    expect((await handler(given)).status).toBe(201);
    expect(seen).toEqual([
      { own: true, text: '{"a": 1}' },
      { own: false, text: '{"a": 1}' },
    ]);
  });

  test("may give its command itself, and still gets the body", async () => {
    const handler = fetchIdempotency({ database: service.database, scope: "shared" })(
      { operation: "given", command: amountIn },
      async (each) => new Response(await amountIn(each)),
    );
    const key = newKey("fetch");
    const send = (amount: string): Promise<Response> => {
      const body = new URLSearchParams({ amount, nonce: newKey() });
      return handler(
        new Request("https://shop.example/", { method: "POST", headers: { "idempotency-key": key }, body }),
      );
    };
    expect(await (await send("10.00")).text()).toBe("10.00");
    expect((await send("10.00")).headers.get("idempotent-replayed")).toBe("true");
    expect((await send("20.00")).status).toBe(409);
  });

  test("throws on what it threw, and stores nothing", async () => {
    const failure = new Error("mine");
    const handler = fetchIdempotency({ database: service.database, scope: "shared" })(
      { operation: "throws" },
      async (_each, once) => {
        await pay(once, "throws");
        throw failure;
      },
    );
    const key = newKey("fetch");
    await expect(handler(request(key))).rejects.toBe(failure);
    expect(await service.payments(key)).toBe(0);
    expect(await service.recordOf(key)).toBeUndefined();
  });

  test("can't return a response that can't be replayed", async () => {
    const handler = fetchIdempotency({ database: service.database, scope: "shared" })(
      { operation: "error-response" },
      () => Response.error(),
    );
    const answer = await handler(request(newKey("fetch")));
    expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([
      500,
      "response_unsupported",
    ]);
  });

  test("is given a checked key where only that is asked for", async () => {
    const handler = fetchKey((_request, { key }) => new Response(key));
    expect(await (await handler(request('"k-1"'))).text()).toBe("k-1");
    expect((await handler(new Request("https://shop.example", { method: "POST" }))).status).toBe(400);
  });
});
