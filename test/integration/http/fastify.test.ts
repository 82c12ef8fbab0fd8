import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { fastifyApp } from "./apps/fastify-app.ts";
import { trapRoutes } from "./apps/fastify-traps.ts";
import { call } from "./client.ts";
import type { Answer } from "./client.ts";
import { createService } from "./service.ts";
import type { Service } from "./service.ts";
import { newKey } from "./suite.ts";

describe("Fastify", () => {
  let service: Service;
  let app: FastifyInstance;
  let url: string;
  const finished: string[] = [];

  beforeAll(async () => {
    service = await createService();
    app = await fastifyApp({}, { database: service.database });
    await trapRoutes(app, service.database, finished);
    url = await app.listen({ port: 0, host: "127.0.0.1" });
  });
  afterAll(async () => {
    await app.close();
    await service[Symbol.asyncDispose]();
  });

  const post = (name: string, key: string, options = {}): Promise<Answer> =>
    call(`${url}/${name}`, { key, body: {}, ...options });
  const twice = async (
    name: string,
    options = {},
  ): Promise<{ key: string; first: Answer; second: Answer }> => {
    const key = newKey("fastify");
    const first = await post(name, key, options);
    return { key, first, second: await post(name, key, options) };
  };

  test.each([
    ["hijack", 201, "raw"],
    ["raw-end", 200, "raw"],
    ["response-object", 202, "from fetch"],
  ])("keeps what %s sends", async (name, status, text) => {
    const { key, first, second } = await twice(name);
    expect([first.status, first.text]).toEqual([status, text]);
    expect([second.status, second.text]).toEqual([status, text]);
    expect(second.headers["idempotent-replayed"]).toBe("true");
    expect(await service.payments(key)).toBe(1);
  });

  test("answers for a handler that hijacked its reply and then threw", async () => {
    const { key, first, second } = await twice("hijack-throw");
    expect([first.status, second.status]).toEqual([500, 500]);
    expect(await service.payments(key)).toBe(0);
  });

  test("drops early hints, which would leave before COMMIT", async () => {
    const { first } = await twice("hints");
    expect(first.status).toBe(200);
    expect(first.json()).toEqual({ ok: true });
  });

  test.each(["sends-error", "callback-error"])("takes an error that %s for a throw", async (name) => {
    const { key, first, second } = await twice(name);
    expect([first.status, second.status]).toEqual([422, 422]);
    expect(second.text).toBe(first.text);
    expect(second.headers["idempotent-replayed"]).toBe("true");
    expect(await service.payments(key)).toBe(0);
    expect((await service.recordOf(key))?.["disposition"]).toBe("refuse");
  });

  test("runs again when what is sent is a serialization failure", async () => {
    const { key, first, second } = await twice("sends-conflict");
    expect(first.json()).toEqual({ conflicts: 2 });
    expect(second.text).toBe(first.text);
    expect(await service.payments(key)).toBe(1);
  });

  test("hands an error after sending to the error handler, and drops what was sent", async () => {
    const { key, first } = await twice("throws-after-sending");
    expect(first.status).toBe(422);
    expect(first.json()).toEqual({ error: "after sending" });
    expect(first.headers["x-sent"]).toBeUndefined();
    expect(await service.payments(key)).toBe(0);
  });

  test("leaves status and headers that a handler chose before it threw to the error handler", async () => {
    const { first } = await twice("throws-after-code");
    expect(first.headers["x-before"]).toBe("1");
    expect(first.json()).toEqual({ error: "natural" });
  });

  test("refuses trailers, loudly", async () => {
    const { key, first } = await twice("trailer");
    expect(first.status).toBe(500);
    expect(first.json()).toMatchObject({ code: "response_unsupported", retry: "stop" });
    expect(await service.payments(key)).toBe(0);
  });

  test("renders the error of a stream that breaks before its first byte", async () => {
    const { key, first, second } = await twice("broken-stream");
    expect(first.status).toBe(422);
    expect(first.json()).toEqual({ error: "before the first byte" });
    expect(second.text).toBe(first.text);
    expect(await service.payments(key)).toBe(0);
  });

  test("discards a response that its schema refuses", async () => {
    const { key, first } = await twice("schema");
    expect(first.status).toBe(500);
    expect(await service.payments(key)).toBe(0);
    expect(await service.recordOf(key)).toBeUndefined();
  });

  test.each(["nested", "nested-schema"])(
    "stores what a nested error handler renders for %s, with no writes",
    async (name) => {
      const { key, first, second } = await twice(name);
      expect(first.status).toBe(418);
      expect(first.headers["x-nested"]).toBe("1");
      expect(second.text).toBe(first.text);
      expect(second.headers["idempotent-replayed"]).toBe("true");
      expect(await service.payments(key)).toBe(0);
      expect((await service.recordOf(key))?.["disposition"]).toBe("refuse");
    },
  );

  test("replays a record byte for byte, whatever an onSend hook makes of it", async () => {
    const { key, first, second } = await twice("hooked");
    expect(first.json()["hook"]).toBeDefined();
    expect(second.text).toBe(first.text);
    const failing = await post("hooked", key, { headers: { "x-fail": "1" } });
    expect([failing.status, failing.text]).toEqual([201, first.text]);
    expect(failing.headers.location).toBe("/hooked/1");
    expect(failing.headers["x-request-id"]).toBeDefined();
  });

  test("discards an answer whose onSend hook fails late", async () => {
    const key = newKey("fastify");
    const failed = await post("hooked", key, { headers: { "x-fail": "1" } });
    expect(failed.status).toBe(500);
    expect(await service.payments(key)).toBe(0);
    expect((await post("hooked", key)).status).toBe(201);
    expect(await service.payments(key)).toBe(1);
  });

  test("names the parser that a body needs", async () => {
    const answer = await post("unread", newKey("fastify"), {
      body: "x",
      headers: { "content-type": "application/unread" },
    });
    expect(answer.status).toBe(500);
    expect(answer.json()["error"]).toContain('no parser for "application/unread"');
  });

  test("takes a multipart body only with a command of its own", async () => {
    const form = (boundary: string): { body: string; headers: Record<string, string> } => ({
      body: `--${boundary}\r\ncontent-disposition: form-data; name="f"; filename="a.txt"\r\n\r\nhello\r\n--${boundary}--\r\n`,
      headers: { "content-type": `multipart/form-data; boundary=${boundary}`, "x-digest": "of-hello" },
    });
    const key = newKey("fastify");
    const first = await post("upload", key, form("one"));
    const second = await post("upload", key, form("two"));
    expect(first.json()["name"]).toBe("a.txt");
    expect(second.text).toBe(first.text);
    expect(second.headers["idempotent-replayed"]).toBe("true");
    const undeclared = await post("upload-undeclared", newKey("fastify"), form("three"));
    expect(undeclared.status).toBe(500);
    expect(undeclared.json()["code"]).toBe("command_body_unread");
  });

  test("refuses to protect a method that changes nothing", async () => {
    const answer = await call(`${url}/read`, { method: "GET", key: newKey("fastify") });
    expect(answer.status).toBe(500);
    expect(answer.json()["code"]).toBe("method_unprotectable");
  });

  test("works under inject, and tells onResponse once for every request", async () => {
    finished.length = 0;
    const key = newKey("fastify");
    const inject = (): Promise<{ statusCode: number; body: string; headers: Record<string, unknown> }> =>
      app.inject({
        method: "POST",
        url: "/raw-end?inject",
        headers: { "idempotency-key": key },
        payload: {},
      });
    const first = await inject();
    const second = await inject();
    expect([first.statusCode, first.body]).toEqual([200, "raw"]);
    expect(second.body).toBe("raw");
    expect(second.headers["idempotent-replayed"]).toBe("true");
    await app.inject({ method: "POST", url: "/keyed" });
    expect(finished.filter((each) => each === "/raw-end?inject")).toHaveLength(2);
  });

  test("demands a key where only that is asked for", async () => {
    expect((await call(`${url}/keyed`, { key: '"k-1"' })).json()).toEqual({ key: "k-1" });
    const missing = await call(`${url}/keyed`);
    expect(missing.status).toBe(400);
    expect(missing.json()["code"]).toBe("idempotency_key_missing");
    expect((await call(`${url}/keyed`, { key: "a,b" })).json()["code"]).toBe("idempotency_key_malformed");
  });
});
