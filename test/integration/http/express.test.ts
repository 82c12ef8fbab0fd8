import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

import express from "express";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { trapApp } from "./apps/express-traps.ts";
import { listening } from "./apps/framework.ts";
import type { App } from "./apps/index.ts";
import { call } from "./client.ts";
import type { Answer } from "./client.ts";
import { rawExchange } from "./raw-socket.ts";
import { barrier } from "./scenarios.ts";
import type { Barrier } from "./scenarios.ts";
import { createService } from "./service.ts";
import type { Service } from "./service.ts";
import { newKey } from "./suite.ts";

const express4 = createRequire(import.meta.url)("express4") as typeof express;

describe.each([
  ["Express 5", express],
  ["Express 4", express4],
])("%s", (_name, make) => {
  let service: Service;
  let app: App;
  let folder: string;
  let late: Barrier = barrier();
  const finished: string[] = [];

  beforeAll(async () => {
    service = await createService();
    folder = mkdtempSync(join(tmpdir(), "idemkit-http-"));
    writeFileSync(join(folder, "receipt.txt"), "a receipt");
    const traps = { make, database: service.database, folder, finished, late: () => late };
    // No error handler of its own: Express's default one renders.
    app = await listening(createServer(trapApp(traps)));
  });
  afterAll(async () => {
    await app.close();
    rmSync(folder, { recursive: true });
    await service[Symbol.asyncDispose]();
  });

  const post = (name: string, key: string, options = {}): Promise<Answer> =>
    call(`${app.url}/${name}`, { key, body: {}, ...options });

  test.each([
    ["sends-file", 200, "a receipt"],
    ["returns-res", 201, '{"sent":true}'],
    ["callback", 201, '{"sent":true}'],
    ["pipes", 200, "one two"],
    ["flat-headers", 201, "one two three"],
    ["hints", 200, "after hints"],
    ["finish", 200, "{}"],
  ])("keeps what %s sends", async (name, status, text) => {
    const key = newKey("express");
    finished.length = 0;
    const first = await post(name, key);
    const second = await post(name, key);
    expect([first.status, first.text]).toEqual([status, text]);
    expect([second.status, second.text]).toEqual([status, text]);
    expect(second.headers["idempotent-replayed"]).toBe("true");
    expect(second.headers["content-type"]).toBe(first.headers["content-type"]);
    expect(await service.payments(key)).toBe(1);
    if (name === "finish") expect(finished).toEqual(["handler"]);
    const links = name === "flat-headers" ? "</a>, </b>" : undefined;
    expect([first, second].map((each) => each.headers["link"])).toEqual([links, links]);
  });

  test("drops 1xx responses, which would leave before COMMIT", async () => {
    const raw = rawExchange(app.url, "/hints", newKey("express"));
    expect(await raw.status()).toBe(200);
    expect(raw.received().match(/HTTP\/1\.1/g)).toHaveLength(1);
  });

  test("refuses trailers, loudly", async () => {
    const key = newKey("express");
    const answer = await post("trailers", key);
    expect([answer.status, answer.json()["code"]]).toEqual([500, "response_unsupported"]);
    expect(await service.payments(key)).toBe(0);
  });

  test.each([
    ["throws-after-sending", 422],
    ["begins-and-throws", 500],
    ["destroys", 422],
  ])("hands the error of %s to Express, and drops what was sent", async (name, status) => {
    const key = newKey("express");
    const answer = await post(name, key);
    expect(answer.status).toBe(status);
    expect(answer.headers["content-type"]).toContain("text/html");
    expect(answer.text).not.toContain("the first half");
    expect(answer.headers["x-sent"]).toBeUndefined();
    expect(await service.payments(key)).toBe(0);
  });

  test("saves a session with the answer", async () => {
    const answer = await post("session", newKey("express"));
    const cookie = String(answer.headers["set-cookie"]?.[0]).split(";")[0] ?? "";
    const saved = await call(`${app.url}/session`, { method: "GET", headers: { cookie } });
    expect(saved.json()).toMatchObject({ paid: true });
  });

  test("answers for a handler that does not, and survives what it sends later", async () => {
    late = barrier();
    const key = newKey("express");
    const answer = await post("never", key);
    expect([answer.status, answer.json()["code"]]).toEqual([503, "handler_timed_out"]);
    late.release();
    await late.reached;
    expect(await service.payments(key)).toBe(0);
    expect((await post("returns-res", newKey("express"))).status).toBe(201);
  });

  test("answers for an error handler that does not", async () => {
    const key = newKey("express");
    const answer = await post("error-handler-hangs", key);
    expect([answer.status, answer.json()["code"]]).toEqual([503, "handler_timed_out"]);
    expect(await service.payments(key)).toBe(0);
    expect(await service.recordOf(key)).toBeUndefined();
  });

  test("names the parser that a body needs, and takes an empty object for what it is", async () => {
    const text = await post("unread", newKey("express"), {
      body: "x",
      headers: { "content-type": "text/plain" },
    });
    expect(text.status).toBe(500);
    expect(text.text).toContain("no parser for");
    const form = await post("unread", newKey("express"), {
      body: "--x--",
      headers: { "content-type": "multipart/form-data; boundary=x" },
    });
    expect(form.text).toContain("command: (request) =&gt;");
    expect((await post("unread", newKey("express"), { body: {} })).status).toBe(200);
    expect((await post("unread", newKey("express"), { body: undefined })).status).toBe(200);
  });

  test("sees a form as its handler does", async () => {
    const key = newKey("express");
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    await post("form", key, { body: "a=1&b=2", headers });
    expect((await post("form", key, { body: "b=2&a=%31", headers })).headers["idempotent-replayed"]).toBe(
      "true",
    );
    expect((await post("form", key, { body: "a=1&b=3", headers })).status).toBe(409);
  });

  test("fingerprints the path before a router has cut it", async () => {
    const key = newKey("express");
    expect((await post("orders/1/confirm", key)).json()).toEqual({ order: "1" });
    expect((await post("orders/2/confirm", key)).status).toBe(409);
    expect((await post("orders/1/confirm", key)).headers["idempotent-replayed"]).toBe("true");
  });

  test("demands a key where only that is asked for", async () => {
    expect((await call(`${app.url}/keyed`, { key: "k-1" })).json()).toEqual({ key: "k-1" });
    expect((await call(`${app.url}/keyed`)).json()["code"]).toBe("idempotency_key_missing");
  });
});
