import { randomUUID } from "node:crypto";

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { createDatabase, spawnProcess } from "../../support/index.ts";
import type { TestDatabase, TestProcess } from "../../support/index.ts";

let database: TestDatabase;

beforeAll(async () => {
  database = await createDatabase();
});
afterAll(() => database.drop());

function run(example: string): TestProcess {
  return spawnProcess(`examples/${example}.mjs`, {
    env: { DATABASE_URL: database.connectionString, PORT: "0" },
  });
}

describe.each(["fastify", "express"])("the example for %s", (name) => {
  let example: TestProcess;
  let url: string;

  beforeAll(async () => {
    example = run(name);
    url = `${(await example.waitForLine(/^(http:\S+)$/))[1]}/payments`;
  });
  afterAll(async () => {
    await example[Symbol.asyncDispose]();
  });

  async function pay(key: string | undefined, amount: string) {
    const headers = {
      "x-customer": "alice",
      "content-type": "application/json",
      ...(key === undefined ? {} : { "idempotency-key": key }),
    };
    const response = await fetch(url, {
      method: "POST",
      headers,
      body: JSON.stringify({ payer: "alice", amount }),
    });
    const { status } = response;
    const body = (await response.json()) as Record<string, unknown>;
    return { status, replayed: response.headers.get("idempotent-replayed"), body };
  }

  test("does what the getting-started page says", async () => {
    const key = randomUUID();
    const first = await pay(key, "10.00");
    expect(first).toMatchObject({ status: 201, replayed: null, body: { payer: "alice", amount: "10.00" } });
    expect(await pay(key, "10.00")).toEqual({ ...first, replayed: "true" });
    expect(await pay(key, "11.00")).toMatchObject({ status: 409, body: { code: "idempotency_key_reused" } });
    expect(await pay(undefined, "10.00")).toMatchObject({
      status: 400,
      body: { code: "idempotency_key_missing" },
    });
    const { rows } = await database
      .pool()
      .query("select amount from payment where id = $1", [first.body["id"]]);
    expect(rows).toEqual([{ amount: "10.0000" }]);
  });

  test("ends when it is told to", async () => {
    expect(await example.kill("SIGTERM")).toEqual({ code: 0, signal: null });
  });
});

test("the example below HTTP makes one order, and refuses another command under its key", async () => {
  const example = run("run-once");
  expect(await example.exited).toEqual({ code: 0, signal: null });
  expect(example.lines).toEqual(["executed", "replayed", "one order", "mismatch", "idempotency_key_reused"]);
});

test("the example of an inbox handles an event that came twice once", async () => {
  const example = run("inbox");
  expect(await example.exited).toEqual({ code: 0, signal: null });
  expect(example.lines).toEqual(["executed", "duplicate", "1 booking"]);
});
