import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { idempotentFetch, memoryKeys, webStorageKeys } from "idemkit/client";
import type { IdempotentFetchOptions, KeyStore, WebStorage } from "idemkit/client";
import { fileKeys } from "idemkit/client/file";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

interface Seen {
  readonly method: string | undefined;
  readonly key: string | undefined;
  readonly body: string;
}

let server: Server;
let url: string;
let seen: Seen[];
let answers: Answer[];

beforeEach(async () => {
  seen = [];
  answers = [];
  server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      const key = request.headers["idempotency-key"];
      seen.push({ method: request.method, key: Array.isArray(key) ? key.join(",") : key, body });
      (answers.shift() ?? status(201))(request, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/payments`;
});

afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

function status(code: number, headers: Record<string, string> = {}, body = ""): Answer {
  return (_request, response) => void response.writeHead(code, headers).end(body);
}

function problem(code: number, retry: string, more: Record<string, string> = {}): Answer {
  const body = JSON.stringify({ retry, ...more });
  return status(code, { "content-type": "application/problem+json" }, body);
}

const cut: Answer = (request) => void request.socket.destroy();
const cutInBody: Answer = (request, response) => {
  response.writeHead(201, { "content-length": "100" });
  response.write("half", () => request.socket.destroy());
};
const silence: Answer = () => {};

function client(options: IdempotentFetchOptions = {}): ReturnType<typeof idempotentFetch> {
  return idempotentFetch({ backoffBaseMs: 1, backoffMaxMs: 2, totalTimeoutMs: 5000, ...options });
}

const pay = { method: "POST", body: '{"amount":"1.00"}', operation: "pay:order-1" };

function keysSent(): readonly (string | undefined)[] {
  return [...new Set(seen.map(({ key }) => key))];
}

describe("one operation", () => {
  test.each([
    ["a lost request", cut],
    ["an answer that breaks off", cutInBody],
    ["503", status(503)],
    ["429 with Retry-After", status(429, { "retry-after": "0" })],
    ["409 in progress", status(409, { "retry-after": "0" })],
    ["a problem that asks for the same key", problem(418, "same-key")],
  ])("keeps its key and its body after %s", async (_name, answer) => {
    answers = [answer, answer];
    const response = await client()(url, pay);
    expect(response.status).toBe(201);
    expect(seen.map(({ body }) => body)).toEqual([pay.body, pay.body, pay.body]);
    expect(keysSent()).toHaveLength(1);
    expect(keysSent()[0]).toMatch(/^[0-9a-f-]{36}$/);
  });

  test("is not repeated after a final answer, and a later call repeats it under the same key", async () => {
    const send = client();
    await send(url, pay);
    await send(url, pay);
    expect(seen).toHaveLength(2);
    expect(keysSent()).toHaveLength(1);
  });

  test("gets a new key for a corrected request after a certain refusal", async () => {
    answers = [status(422)];
    const send = client();
    expect((await send(url, pay)).status).toBe(422);
    expect((await send(url, { ...pay, body: '{"amount":"2.00"}' })).status).toBe(201);
    expect(keysSent()).toHaveLength(2);
  });

  test("keeps its key after a refusal that follows a lost answer", async () => {
    answers = [cut, status(404)];
    const send = client();
    expect((await send(url, pay)).status).toBe(404);
    await expect(send(url, { ...pay, body: "{}" })).rejects.toMatchObject({
      code: "client_operation_changed",
    });
    await send(url, pay);
    expect(keysSent()).toHaveLength(1);
  });

  test("is freed by a stored refusal even after a lost answer", async () => {
    answers = [cut, status(422, { "idempotent-replayed": "true" })];
    const send = client();
    await send(url, pay);
    await send(url, { ...pay, body: "{}" });
    expect(keysSent()).toHaveLength(2);
  });

  test.each([
    ["unknown outcome", problem(409, "stop")],
    ["a key that another command holds", problem(409, "new-key", { code: "idempotency_key_reused" })],
    ["an expired token", status(401)],
  ])("stops and keeps its key at %s", async (_name, answer) => {
    answers = [answer];
    const send = client();
    await send(url, pay);
    expect(seen).toHaveLength(1);
    await send(url, pay);
    expect(keysSent()).toHaveLength(1);
  });

  test("cannot be given another key while it has one", async () => {
    const send = client();
    await send(url, pay);
    await expect(send(url, { ...pay, key: "mine" })).rejects.toMatchObject({
      code: "client_operation_changed",
    });
    await send.forget(pay.operation);
    await send(url, { ...pay, key: "mine" });
    expect(seen.at(-1)?.key).toBe("mine");
  });

  test("says that it is in doubt when time is up without an answer", async () => {
    answers = [silence, silence, silence, silence];
    const keys = memoryKeys();
    const impatient = client({ keys, tryTimeoutMs: 50, totalTimeoutMs: 120 });
    await expect(impatient(url, pay)).rejects.toMatchObject({
      code: "client_operation_in_doubt",
      retryable: true,
    });
    answers = [];
    await client({ keys })(url, pay);
    expect(keysSent()).toHaveLength(1);
  });

  test("sends a stream, a form and a Request as the first try did", async () => {
    answers = [cut, status(201), cut, status(201), cut];
    const send = client();
    const form = new URLSearchParams({ a: "1" });
    const stream = new Blob(["streamed"]).stream();
    await send(url, { method: "POST", body: form, operation: "form" });
    await send(url, { method: "POST", body: stream, operation: "stream" });
    await send(new Request(url, { method: "POST", body: "asked" }), { operation: "request" });
    expect(seen.map(({ body }) => body)).toEqual(["a=1", "a=1", "streamed", "streamed", "asked", "asked"]);
  });
});

describe("without a key", () => {
  test.each(["POST", "PATCH"])("a failed %s is not sent again", async (method) => {
    answers = [cut];
    await expect(client()(url, { method })).rejects.toMatchObject({ code: "client_retry_refused" });
    answers = [status(503)];
    expect((await client()(url, { method })).status).toBe(503);
    expect(seen).toHaveLength(2);
  });

  test.each(["GET", "PUT", "DELETE"])("a failed %s is sent again", async (method) => {
    answers = [cut, status(503)];
    expect((await client()(url, { method })).status).toBe(201);
    expect(seen).toHaveLength(3);
  });

  test("a key in the headers counts", async () => {
    answers = [cut];
    await client()(url, { method: "POST", headers: { "Idempotency-Key": "by-hand" } });
    expect(seen.map(({ key }) => key)).toEqual(["by-hand", "by-hand"]);
  });
});

describe("bounds", () => {
  test("a Retry-After beyond the total time is told, not waited for", async () => {
    answers = [status(503, { "retry-after": "3600" })];
    expect((await client()(url, pay)).status).toBe(503);
    expect(seen).toHaveLength(1);
  });

  test("the caller's abort ends the call with its reason, and the key is kept", async () => {
    const controller = new AbortController();
    const reason = new Error("page left");
    answers = [() => controller.abort(reason)];
    const send = client();
    await expect(send(url, { ...pay, signal: controller.signal })).rejects.toBe(reason);
    await send(url, pay);
    expect(keysSent()).toHaveLength(1);
  });

  test("an unknown option is refused with the nearest name", () => {
    const options = { tryTimeoutMS: 1 } as IdempotentFetchOptions;
    expect(() => idempotentFetch(options)).toThrow(/did you mean tryTimeoutMs/);
  });
});

describe("key stores", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "idemkit-keys-"));
  });
  afterEach(() => rm(folder, { recursive: true }));

  function storage(): WebStorage {
    const items = new Map<string, string>();
    return {
      getItem: (name) => items.get(name) ?? null,
      setItem: (name, value) => void items.set(name, value),
      removeItem: (name) => void items.delete(name),
    };
  }

  test.each<[string, () => () => KeyStore]>([
    [
      "memory",
      () =>
        (
          (store) => () =>
            store
        )(memoryKeys()),
    ],
    [
      "web storage",
      () =>
        (
          (items) => () =>
            webStorageKeys(items)
        )(storage()),
    ],
    ["a folder", () => () => fileKeys(folder)],
  ])("%s gives an operation one key, also to callers at once and after a restart", async (_name, make) => {
    const open = make();
    await Promise.all(Array.from({ length: 20 }, () => client({ keys: open() })(url, pay)));
    await client({ keys: open() })(url, pay);
    expect(keysSent()).toHaveLength(1);
    await open().forget(pay.operation);
    await client({ keys: open() })(url, pay);
    expect(keysSent()).toHaveLength(2);
  });
});
