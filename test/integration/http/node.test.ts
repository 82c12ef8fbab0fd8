import { createServer } from "node:http";
import { connect, createServer as createHttp2Server } from "node:http2";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

import { idempotency, requireIdempotencyKey } from "idemkit/node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { until } from "../../support/index.ts";
import { listening } from "./apps/framework.ts";
import type { App } from "./apps/index.ts";
import { call } from "./client.ts";
import { rawExchange } from "./raw-socket.ts";
import { pay } from "./scenarios.ts";
import { createService } from "./service.ts";
import type { Service } from "./service.ts";
import { newKey } from "./suite.ts";

describe("node:http", () => {
  let service: Service;
  let app: App;
  const bodies: unknown[] = [];

  beforeAll(async () => {
    service = await createService();
    const idempotent = idempotency({ database: service.database, scope: "shared" });
    const handlers = {
      "/echo": idempotent({ operation: "echo", maxRequestBytes: 100 }, async (_req, _res, once) => {
        await pay(once, "echo");
        bodies.push(once.body);
        return { ok: true };
      }),
      "/bytes": idempotent({ operation: "bytes" }, async () => Buffer.from("bytes")),
      "/throws": idempotent({ operation: "throws" }, async () => {
        throw new Error("a secret of the server");
      }),
      "/keyed": requireIdempotencyKey((_req, res, { key }) => res.end(key)),
    };
    app = await listening(
      createServer((req, res) => void handlers[req.url as keyof typeof handlers](req, res)),
    );
  });
  afterAll(async () => {
    await app.close();
    await service[Symbol.asyncDispose]();
  });

  test("answers what waits for its COMMIT although the server closes", async () => {
    await using other = await createService();
    const holder = await other.pool.connect();
    await holder.query("select pg_advisory_lock(42)");
    const idempotent = idempotency({ database: other.database, scope: "shared" });
    const handler = idempotent({ operation: "slow" }, async (_req, res, { tx }) => {
      await tx.query("insert into slow values (1)"); // its COMMIT waits for the lock
      res.end("done");
    });
    const server = createServer((req, res) => void handler(req, res));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const raw = rawExchange(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, "/", newKey());
    const committing = "select from pg_locks where locktype = 'advisory' and not granted and objid = 42";
    await until(async () => ((await holder.query(committing)).rowCount ?? 0) > 0, { what: "COMMIT waits" });
    const closed = new Promise((resolve) => server.close(resolve));
    await holder.query("select pg_advisory_unlock(42)");
    holder.release();
    expect(await raw.status()).toBe(200);
    await closed;
  });

  test("reads JSON, bytes and nothing for the handler", async () => {
    bodies.length = 0;
    await call(`${app.url}/echo`, { key: newKey(), body: { a: 1 } });
    await call(`${app.url}/echo`, { key: newKey(), body: "text", headers: { "content-type": "text/plain" } });
    await call(`${app.url}/echo`, { key: newKey() });
    expect(bodies).toEqual([{ a: 1 }, Buffer.from("text"), undefined]);
  });

  test("refuses a body that is too large, announced or not, and one that is no JSON", async () => {
    const large = "x".repeat(101);
    const announced = await call(`${app.url}/echo`, { key: newKey(), body: large });
    const chunked = await call(`${app.url}/echo`, {
      key: newKey(),
      body: large,
      headers: { "content-length": [], "transfer-encoding": "chunked" },
    });
    for (const answer of [announced, chunked]) {
      expect([answer.status, answer.json()["code"]]).toEqual([413, "command_too_large"]);
    }
    const broken = await call(`${app.url}/echo`, { key: newKey(), body: "{" });
    expect([broken.status, broken.json()["code"]]).toEqual([400, "command_not_json"]);
  });

  test("sends returned bytes as they are, and tells nothing of an unknown error", async () => {
    expect((await call(`${app.url}/bytes`, { key: newKey() })).text).toBe("bytes");
    const answer = await call(`${app.url}/throws`, { key: newKey() });
    expect(answer.json()).toEqual({ type: "about:blank", title: "Internal Server Error", status: 500 });
  });

  test("hands a checked key on where only that is asked for", async () => {
    expect((await call(`${app.url}/keyed`, { key: '"k-1"' })).text).toBe("k-1");
    expect((await call(`${app.url}/keyed`)).json()["code"]).toBe("idempotency_key_missing");
  });
});

describe("node:http2, in its compatible form", () => {
  let service: Service;
  let url: string;
  let close: () => void;

  beforeAll(async () => {
    service = await createService();
    const idempotent = idempotency({ database: service.database, scope: "shared" });
    const handler = idempotent<Http2ServerRequest, Http2ServerResponse>(
      { operation: "h2" },
      async (req, res, once) => {
        const id = await pay(once, "h2");
        if (req.headers["x-throw"] !== undefined) {
          res.writeHead(201).write("the first half");
          throw new Error("halfway");
        }
        res.setHeader("location", `/payments/${id}`);
        res.writeHead(201, { "content-type": "text/plain" });
        await pipeline(Readable.from(["one ", JSON.stringify(once.body ?? null)]), res);
      },
    );
    const server = createHttp2Server((req, res) => void handler(req, res));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    close = () => server.close();
  });
  afterAll(async () => {
    close();
    await service[Symbol.asyncDispose]();
  });

  async function post(
    key: string,
    body: string,
    headers = {},
  ): Promise<{ status: number; text: string; headers: Record<string, unknown> }> {
    const client = connect(url);
    const stream = client.request({
      ":method": "POST",
      ":path": "/h2",
      "idempotency-key": key,
      "content-type": "application/json",
      ...headers,
    });
    const head = new Promise<Record<string, unknown>>((resolve) => stream.on("response", resolve));
    stream.end(body);
    let text = "";
    for await (const chunk of stream) text += String(chunk);
    client.close();
    const received = await head;
    return { status: Number(received[":status"]), text, headers: received };
  }

  test("keeps, replays and compares bodies that no header announces", async () => {
    const key = newKey();
    const first = await post(key, '{"a":1}');
    const second = await post(key, '{"a":1}');
    expect([first.status, first.text]).toEqual([201, 'one {"a":1}']);
    expect([second.status, second.text]).toEqual([201, first.text]);
    expect(second.headers["location"]).toBe(first.headers["location"]);
    expect(second.headers["idempotent-replayed"]).toBe("true");
    expect((await post(key, '{"a":2}')).status).toBe(409);
    expect(await service.payments(key)).toBe(1);
  });

  test("drops what was sent before a throw", async () => {
    const key = newKey();
    const answer = await post(key, "{}", { "x-throw": "1" });
    expect(answer.status).toBe(500);
    expect(answer.text).not.toContain("the first half");
    expect(await service.payments(key)).toBe(0);
  });
});
