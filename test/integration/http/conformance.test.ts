import { createServer } from "node:net";
import type { AddressInfo } from "node:net";

import { fromPg } from "idemkit/pg";
import type { OutcomeEvent } from "idemkit/http";
import { Client } from "pg";
import type { Pool } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";

import { createDatabase, createPool, until } from "../../support/index.ts";
import type { TestDatabase } from "../../support/index.ts";
import { frameworks } from "./apps/index.ts";
import type { App } from "./apps/index.ts";
import { call } from "./client.ts";
import type { Answer } from "./client.ts";
import { rawExchange } from "./raw-socket.ts";
import { answers, barrier, scenarios, stage, tables } from "./scenarios.ts";

describe.each(frameworks)("$name", (framework) => {
  let db: TestDatabase;
  let pool: Pool;
  let app: App;
  const on = stage();
  const events: OutcomeEvent[] = [];

  beforeAll(async () => {
    db = await createDatabase();
    pool = db.pool({ max: 5 });
    await pool.query(tables);
    app = await framework.start(scenarios(on), {
      database: fromPg(pool),
      onOutcome: (event) => events.push(event),
    });
  });
  afterAll(async () => {
    await app.close();
    await db.drop();
  });
  beforeEach(() => {
    on.barrier = barrier();
    events.length = 0;
  });

  let keys = 0;
  const newKey = (prefix = "key"): string => `${prefix}-${(keys += 1)}`;
  const post = (name: string, options: Parameters<typeof call>[1]): Promise<Answer> =>
    call(`${app.url}/${name}`, options);
  const payments = async (key: string): Promise<number> => {
    const { rows } = await pool.query("select 1 from payment where key = $1", [key]);
    return rows.length;
  };
  const recordOf = async (key: string): Promise<Record<string, unknown> | undefined> => {
    const { rows } = await pool.query("select * from idemkit.idempotency_record where key = $1", [key]);
    return rows[0] as Record<string, unknown> | undefined;
  };

  describe("a response", () => {
    test.each(Object.keys(answers))(
      "%s is replayed with the same status, stored headers and bytes",
      async (name) => {
        const key = newKey();
        const first = await post(name, { key, body: { a: 1 } });
        const replay = await post(name, { key, body: { a: 1 } });
        expect(first.headers["idempotent-replayed"]).toBeUndefined();
        expect(replay.headers["idempotent-replayed"]).toBe("true");
        expect(replay.headers["cache-control"]).toBe("no-store");
        expect(replay.status).toBe(first.status);
        expect(replay.body.equals(first.body)).toBe(true);
        for (const header of ["content-type", "location", "etag", "link", "content-length"]) {
          expect([header, replay.headers[header]]).toEqual([header, first.headers[header]]);
        }
        expect(await payments(key)).toBe(1);
      },
    );

    test("keeps the status and headers that the handler chose", async () => {
      const key = newKey();
      const first = await post("json", { key, body: {} });
      expect(first.status).toBe(201);
      expect(first.headers.location).toBe("/payments/1");
      expect((await post("binary", { key, body: {} })).body).toEqual(
        Buffer.from([0, 1, 2, 0xff, 0xfe, 0x80, 0x0d, 0x0a, 0]),
      );
      expect((await post("multi-value", { key, body: {} })).headers["link"]).toContain(
        "</a>; rel=prev, </b>; rel=next",
      );
      expect((await post("streamed", { key, body: {} })).text).toMatch(/^first .* last$/);
    });

    test("carries what belongs to one exchange anew, and none of it is stored", async () => {
      const key = newKey();
      const first = await post("multi-value", { key, body: {} });
      const replay = await post("multi-value", { key, body: {} });
      expect(first.headers["set-cookie"]).toEqual(expect.arrayContaining(["a=1", "b=2"]));
      expect(replay.headers["set-cookie"]).not.toContain("a=1");
      expect(replay.headers["set-cookie"]).toHaveLength(1);
      expect(replay.headers["x-request-id"]).not.toBe(first.headers["x-request-id"]);
      expect(replay.headers["access-control-allow-origin"]).toBe("https://shop.example");
      expect(replay.headers.date).toBeDefined();
      const names = (await recordOf(key))?.["headers"] as [string, string][];
      expect(["content-type", "etag", "link"]).toEqual(expect.arrayContaining(names.map(([name]) => name)));
    });

    test("stores the headers that an operation adds, and no others", async () => {
      const key = newKey();
      const first = await post("secret", { key, body: {} });
      const replay = await post("secret", { key, body: {} });
      expect(first.headers["x-other"]).toBe("1");
      expect(first.headers["cache-control"]).toContain("max-age=60");
      expect(replay.headers["x-receipt"]).toBe("42");
      expect(replay.headers["x-other"]).toBeUndefined();
      expect(replay.headers["cache-control"]).toBe("no-store");
    });

    test.each([
      ["gzip", undefined],
      [undefined, "gzip"],
    ])("first taken with coding %s is replayed with coding %s", async (first, second) => {
      const headers = (coding: string | undefined): Record<string, string> =>
        coding === undefined ? {} : { "accept-encoding": coding };
      for (const name of ["long", "streamed"]) {
        const key = newKey();
        const one = await post(name, { key, body: {}, headers: headers(first) });
        const two = await post(name, { key, body: {}, headers: headers(second) });
        expect(two.body.equals(one.body)).toBe(true);
        expect(two.headers["idempotent-replayed"]).toBe("true");
        expect((await recordOf(key))?.["body"]).toEqual(one.body);
        if (first === undefined) expect(one.headers["content-encoding"]).toBeUndefined();
        if (second === undefined) expect(two.headers["content-encoding"]).toBeUndefined();
        const coded = [one, two].some((each) => each.headers["content-encoding"] === "gzip");
        expect(coded).toBe(!["fetch-style", "node:http"].includes(framework.name));
      }
    });
  });

  describe("a key", () => {
    test("that is missing is a 400, before the handler", async () => {
      const answer = await post("json", { body: {} });
      expect(answer.status).toBe(400);
      expect(answer.headers["content-type"]).toBe("application/problem+json");
      expect(answer.json()).toMatchObject({ code: "idempotency_key_missing", status: 400, retry: "new-key" });
    });

    test.for<[what: string, key: string | string[]]>([
      ["empty", ""],
      ["an empty string", '""'],
      ["too long", "k".repeat(256)],
      ["not ASCII", "caf\u00e9"],
      ["an open string", '"abc'],
      ["a string and more", '"abc" def'],
      ["two in one line", "abc, def"],
      ["two headers", ["abc", "def"]],
      ["two equal headers", ["abc", "abc"]],
      ["two strings", ['"abc"', '"def"']],
      ["one string over two headers", ['"abc', 'def"']],
    ])("that is %s is a 400, before any I/O", async ([what, key], context) => {
      const joined = what.startsWith("one string over") && !framework.givesNodeResponse;
      context.skip(joined, "fetch joins repeated headers, so that this is one string with a comma");
      const before = on.runs.get("json") ?? 0;
      const answer = await post("json", { key, body: {} });
      expect(answer.status).toBe(400);
      expect(answer.json()["code"]).toBe("idempotency_key_malformed");
      expect(on.runs.get("json") ?? 0).toBe(before);
    });

    test("is the same bare, as a structured string, and with spaces around it", async () => {
      const key = newKey();
      const first = await post("json", { key, body: {} });
      for (const same of [`"${key}"`, `  ${key} `, `"${key}";v=1`]) {
        const replay = await post("json", { key: same, body: {} });
        expect(replay.headers["idempotent-replayed"]).toBe("true");
        expect(replay.text).toBe(first.text);
      }
      expect(await payments(key)).toBe(1);
    });

    test("of another principal or another operation is another key", async () => {
      const key = newKey();
      await post("json", { key, body: {} });
      const bob = await post("json", { key, body: {}, headers: { "x-principal": "bob" } });
      const other = await post("long", { key, body: {} });
      expect(bob.headers["idempotent-replayed"]).toBeUndefined();
      expect(other.headers["idempotent-replayed"]).toBeUndefined();
      expect(await payments(key)).toBe(3);
    });

    test("of a principal that is empty is an error before any I/O", async () => {
      const key = newKey();
      const answer = await post("json", { key, body: {}, headers: { "x-principal": " " } });
      expect(answer.status).toBe(500);
      expect(answer.json()["code"]).toBe("scope_missing");
      expect(await payments(key)).toBe(0);
    });

    test("is refused with another body, path or query, and not with other spelling of the same JSON", async () => {
      const key = newKey();
      await post("json?a=1", { key, body: '{"a":1,"b":[1,2]}' });
      const spelled = await post("json?a=1", { key, body: ' {"b":[1.0,2e0],\n"a":1, "a":1}' });
      expect(spelled.headers["idempotent-replayed"]).toBe("true");
      for (const [path, body] of [
        ["json?a=1", { a: 1, b: [2, 1] }],
        ["json?a=2", { a: 1, b: [1, 2] }],
        ["json", { a: 1, b: [1, 2] }],
        ["json?a=1", undefined],
      ] as const) {
        const answer = await post(path, { key, body });
        expect(answer.status).toBe(409);
        expect(answer.json()).toMatchObject({ code: "idempotency_key_reused", retry: "new-key" });
      }
      expect(await payments(key)).toBe(1);
    });

    test("that is optional and absent runs unprotected, in a transaction, and stores nothing", async () => {
      const count = async (): Promise<number> =>
        Number((await pool.query("select from payment where note = 'free'")).rowCount);
      const records = async (): Promise<number> =>
        Number((await pool.query("select from idemkit.idempotency_record")).rowCount);
      const before = { payments: await count(), records: await records() };
      const first = await post("free", { body: {} });
      const second = await post("free", { body: {} });
      const failed = await post("free", { body: { fail: true } });
      expect([first.status, second.status, failed.status]).toEqual([201, 201, 500]);
      expect(first.json()["key"]).toBeNull();
      expect(second.text).not.toBe(first.text);
      expect(await count()).toBe(before.payments + 2);
      expect(await records()).toBe(before.records);
      const key = newKey();
      await post("free", { key, body: {} });
      expect((await post("free", { key, body: {} })).headers["idempotent-replayed"]).toBe("true");
    });
  });

  describe("a command", () => {
    test.each([
      ['{"amount":9007199254740993}', "command_number_unsafe"],
      ['{"amount":[1e400]}', "command_number_unsafe"],
      [`${"[".repeat(101)}${"]".repeat(101)}`, "command_too_deep"],
      [`${"[".repeat(5000)}${"]".repeat(5000)}`, "command_too_deep"],
    ])("that can't be told apart is refused: %.40s", async (body, code) => {
      const key = newKey();
      const answer = await post("json", { key, body });
      expect(answer.status).toBe(400);
      expect(answer.json()).toMatchObject({ code, retry: "new-key" });
      expect(answer.json()["at"]).toMatch(/^\//);
      expect(await payments(key)).toBe(0);
    });

    test("that is running is in progress for its own repeats, and a mismatch for others", async () => {
      const key = newKey();
      const first = post("waiting", { key, body: { a: 1 } });
      await on.barrier.reached;
      const repeat = await post("waiting", { key, body: { a: 1 } });
      const other = await post("waiting", { key, body: { a: 2 } });
      expect(repeat.status).toBe(409);
      expect(repeat.headers["retry-after"]).toBe("1");
      expect(repeat.json()).toMatchObject({ code: "operation_in_progress", retry: "same-key" });
      expect(other.status).toBe(409);
      expect(other.json()).toMatchObject({ code: "idempotency_key_reused", retry: "new-key" });
      on.barrier.release();
      expect((await first).status).toBe(201);
      expect(await payments(key)).toBe(1);
    });
  });

  describe("a handler", () => {
    test("that sends a 4xx keeps its writes", async () => {
      const key = newKey();
      expect((await post("bad-request", { key, body: {} })).status).toBe(400);
      expect(await payments(key)).toBe(1);
    });

    test("that throws a definitive error is refused: rolled back, and its answer stored", async (context) => {
      context.skip(
        !framework.rendersThrownErrors,
        "rendersThrownErrors: what is rendered outside can't be stored",
      );
      const key = newKey();
      const first = await post("refuses", { key, body: {} });
      const replay = await post("refuses", { key, body: {} });
      expect(first.status).toBe(422);
      expect(first.json()["error"]).toMatch(/^refused /);
      expect(replay.text).toBe(first.text);
      expect(replay.status).toBe(422);
      expect(replay.headers["idempotent-replayed"]).toBe("true");
      expect(await payments(key)).toBe(0);
      expect((await recordOf(key))?.["disposition"]).toBe("refuse");
    });

    test.each([500, 503, 401, 403, 407, 408, 425, 429])(
      "that throws %i is discarded and may be tried again",
      async (status) => {
        const key = newKey(String(status));
        const runs = on.runs.get("throws") ?? 0;
        for (const _try of [1, 2]) {
          const answer = await post("throws", { key, body: {} });
          expect(answer.status).toBe(status);
          expect(answer.json()["error"]).toBe("thrown");
        }
        expect(on.runs.get("throws")).toBe(runs + 2);
        expect(await payments(key)).toBe(0);
        expect(await recordOf(key)).toBeUndefined();
      },
    );

    test("that throws something else than an Error is discarded", async () => {
      const key = newKey();
      for (const _try of [1, 2]) {
        const answer = await post("throws-text", { key, body: {} });
        expect(answer.status).toBe(500);
      }
      expect(await payments(key)).toBe(0);
    });

    test("that marks its answer as not final may be tried again", async () => {
      const key = newKey();
      const runs = on.runs.get("not-final") ?? 0;
      for (const _try of [1, 2])
        expect((await post("not-final", { key, body: {} })).json()["error"]).toBe("wrong code");
      expect(on.runs.get("not-final")).toBe(runs + 2);
      expect(await payments(key)).toBe(0);
      expect(await recordOf(key)).toBeUndefined();
    });

    test("that sends a 5xx is discarded", async () => {
      const key = newKey();
      expect((await post("fails", { key, body: {} })).status).toBe(502);
      expect(await payments(key)).toBe(0);
      expect(await recordOf(key)).toBeUndefined();
    });

    test("whose transaction can't be serialized runs again on fresh input and a fresh response", async (context) => {
      context.skip(!framework.runsAgain, "next() can be called once");
      on.bodies.length = 0;
      const key = newKey();
      const answer = await post("conflicts", { key, body: { amounts: [1] } });
      expect(answer.status).toBe(201);
      expect(answer.json()).toEqual({ amounts: [1, 99] });
      expect(answer.headers["x-run"]).toBe("2");
      expect(on.bodies).toEqual(['{"amounts":[1]}', '{"amounts":[1]}']);
      expect(await payments(key)).toBe(1);
      expect((await post("conflicts", { key, body: { amounts: [1] } })).headers["idempotent-replayed"]).toBe(
        "true",
      );
    });

    test("that can't run again after a serialization failure is told to come back with the same key", async (context) => {
      context.skip(framework.runsAgain, "it can run again");
      on.bodies.length = 0;
      const key = newKey();
      const answer = await post("conflicts", { key, body: { amounts: [1] } });
      expect(answer.status).toBe(503);
      expect(answer.headers["retry-after"]).toBe("1");
      expect(answer.json()).toMatchObject({ code: "idempotency_unavailable", retry: "same-key" });
      expect((await post("conflicts", { key, body: { amounts: [1] } })).status).toBe(201);
      expect(await payments(key)).toBe(1);
    });

    test("whose COMMIT fails answers with the error and none of its own headers", async () => {
      const key = newKey();
      const answer = await post("fails-at-commit", { key, body: {} });
      expect(answer.status).toBe(409);
      expect(answer.json()["code"]).toBe("23505");
      expect(answer.headers["x-handler"]).toBeUndefined();
      expect(answer.headers.location).toBeUndefined();
      expect(answer.headers["access-control-allow-origin"]).toBe("https://shop.example");
      const stored = framework.rendersCommitErrors ? "refuse" : undefined;
      expect((await recordOf(key))?.["disposition"]).toBe(stored);
      expect((await post("fails-at-commit", { key, body: {} })).status).toBe(409);
    });

    test("whose response is too large is refused loudly, and nothing is committed", async () => {
      const key = newKey();
      for (const _try of [1, 2]) {
        const answer = await post("endless", { key, body: {} });
        expect(answer.status).toBe(500);
        expect(answer.json()).toMatchObject({ code: "response_too_large", retry: "stop" });
      }
      expect(await payments(key)).toBe(0);
      expect(await recordOf(key)).toBeUndefined();
      expect(events.at(-1)?.error?.code).toBe("response_too_large");
    });

    test("whose stream breaks is discarded", async () => {
      const key = newKey();
      const answer = await post("broken-stream", { key, body: {} });
      expect(answer.status).toBe(500);
      expect(answer.json()["error"]).toMatch(/^the source broke|destroyed before it was complete/);
      expect(await payments(key)).toBe(0);
    });

    test("that takes too long is rolled back, and what it does later harms nobody", async () => {
      const key = newKey();
      const answer = await post("late", { key, body: {} });
      expect(answer.status).toBe(503);
      expect(answer.headers["retry-after"]).toBe("1");
      expect(answer.json()).toMatchObject({ code: "handler_timed_out", retry: "same-key" });
      on.barrier.release();
      await on.late;
      expect(await payments(key)).toBe(0);
      expect((await post("json", { key: newKey(), body: {} })).status).toBe(201);
    });
  });

  describe("a client that leaves", () => {
    test.each(["waiting", "waiting-stream"])(
      "during %s changes nothing: the operation is stored",
      async (name) => {
        const key = newKey();
        const gone = post(name, {
          key,
          body: {},
          onRequest: (sent) => void on.barrier.reached.then(() => sent.destroy()),
        });
        await expect(gone).rejects.toThrow();
        await until(async () => (await post(name, { key, body: {} })).status === 409, {
          what: "in progress",
        });
        on.barrier.release();
        const replay = await until(
          async () => {
            const answer = await post(name, { key, body: {} });
            return answer.status === 409 ? undefined : answer;
          },
          { what: "the stored answer" },
        );
        expect(replay.headers["idempotent-replayed"]).toBe("true");
        expect(replay.status).toBeLessThan(300);
        if (name === "waiting-stream") expect(replay.text).toBe("first last");
        expect(await payments(key)).toBe(1);
      },
    );
  });

  describe("the transaction", () => {
    test.each(["slow-commit", "slow-commit-stream"])(
      "of %s has committed before the first byte leaves",
      async (name) => {
        const holder = new Client({ connectionString: db.connectionString });
        await holder.connect();
        await holder.query("select pg_advisory_lock(42)");
        const raw = rawExchange(app.url, `/${name}`, newKey());
        const committing = "select from pg_locks where locktype = 'advisory' and not granted and objid = 42";
        await until(async () => ((await holder.query(committing)).rowCount ?? 0) > 0, {
          what: "COMMIT waits",
        });
        // Whatever was written before this round trip would have arrived by its end.
        await call(`${app.url}/json`, { key: newKey(), body: {} });
        expect(raw.received()).toBe("");
        await holder.query("select pg_advisory_unlock(42)");
        await holder.end();
        expect(await raw.status()).toBeLessThan(300);
      },
    );

    test("can't begin while the store is down: 503, and the handler does not run", async () => {
      const closed = createServer();
      await new Promise<void>((resolve) => closed.listen(0, "127.0.0.1", resolve));
      const { port } = closed.address() as AddressInfo;
      await new Promise((resolve) => closed.close(resolve));
      const nowhere = createPool(`postgres://nobody@127.0.0.1:${port}/nowhere`, {
        connectionTimeoutMillis: 1000,
      });
      const local = stage();
      const down = await framework.start(scenarios(local), { database: fromPg(nowhere) });
      for (const name of ["json", "free"]) {
        const answer = await call(`${down.url}/${name}`, { key: name === "json" ? newKey() : [], body: {} });
        expect(answer.status).toBe(503);
        expect(answer.headers["retry-after"]).toBe("1");
        expect(answer.json()).toMatchObject({ code: "idempotency_unavailable", retry: "same-key" });
      }
      expect(local.runs.size).toBe(0);
      await down.close();
      await nowhere.end();
    });
  });

  test("a mismatch is 422 where the binding says so", async () => {
    const other = await framework.start(
      { other: scenarios(on)["json"]! },
      { database: fromPg(pool), mismatchStatus: 422 },
    );
    const key = newKey();
    await call(`${other.url}/other`, { key, body: { a: 1 } });
    const answer = await call(`${other.url}/other`, { key, body: { a: 2 } });
    expect(answer.status).toBe(422);
    expect(answer.json()).toMatchObject({ code: "idempotency_key_reused", status: 422 });
    await other.close();
  });

  test("every request tells its outcome", async () => {
    const key = newKey();
    await post("json", { key, body: {} });
    await post("json", { key, body: {} });
    await post("json", { key, body: { other: true } });
    await post("fails", { key, body: {} });
    await post("json", { body: {} });
    const seen = events.map(({ operation, outcome, disposition, error }) => [
      operation,
      outcome,
      disposition,
      error?.code,
    ]);
    expect(seen).toEqual([
      ["json", "executed", "keep", undefined],
      ["json", "replayed", "keep", undefined],
      ["json", "mismatch", undefined, undefined],
      ["fails", "executed", "discard", undefined],
      ["json", undefined, undefined, "idempotency_key_missing"],
    ]);
    expect(events[0]?.operationId).toBe(events[1]?.operationId);
    expect(events.every(({ durationMs }) => durationMs > 0)).toBe(true);
  });
});
