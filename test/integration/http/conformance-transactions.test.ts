import { createServer } from "node:net";
import type { AddressInfo } from "node:net";

import { fromPg } from "idemkit/pg";
import { withCrashPoints } from "idemkit/testing";
import { Client } from "pg";
import { describe, expect, test } from "vitest";

import { createPool, until } from "../../support/index.ts";
import { call } from "./client.ts";
import { rawExchange } from "./raw-socket.ts";
import { scenarios, stage } from "./scenarios.ts";
import { overFrameworks } from "./suite.ts";

overFrameworks(({ framework, on, events, database, connectionString, url, newKey, post, payments }) => {
  describe("a client that leaves", () => {
    test.each(["waiting", "waiting-stream", "waits-then-streams"])(
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
        if (name !== "waiting") expect(replay.text).toBe("first last");
        expect(await payments(key)).toBe(1);
      },
    );
  });

  describe("the transaction", () => {
    test.each(["slow-commit", "slow-commit-stream"])(
      "of %s has committed before the first byte leaves",
      async (name) => {
        const holder = new Client({ connectionString: connectionString() });
        await holder.connect();
        await holder.query("select pg_advisory_lock(42)");
        const raw = rawExchange(url(), `/${name}`, newKey());
        const committing = "select from pg_locks where locktype = 'advisory' and not granted and objid = 42";
        await until(async () => ((await holder.query(committing)).rowCount ?? 0) > 0, {
          what: "COMMIT waits",
        });
        // Whatever was written before this round trip would have arrived by its end.
        await call(`${url()}/json`, { key: newKey(), body: {} });
        expect(raw.received()).toBe("");
        await holder.query("select pg_advisory_unlock(42)");
        await holder.end();
        expect(await raw.status()).toBeLessThan(300);
      },
    );

    test("whose answer to COMMIT was lost is told as executed, by what was committed", async () => {
      let lost = 0;
      const losing = withCrashPoints(database(), (point) => {
        if (point !== "after-commit" || lost > 0) return;
        lost += 1;
        throw Object.assign(new Error("the connection is gone"), { code: "ECONNRESET" });
      });
      const local = stage();
      const shaky = await framework.start(scenarios(local), { database: losing });
      const key = newKey();
      const first = await call(`${shaky.url}/json`, { key, body: {} });
      const second = await call(`${shaky.url}/json`, { key, body: {} });
      expect([lost, first.status, second.status]).toEqual([1, 201, 201]);
      expect(first.headers["idempotent-replayed"]).toBeUndefined();
      expect(first.headers.location).toBe("/payments/1");
      expect(second.text).toBe(first.text);
      expect(second.headers["idempotent-replayed"]).toBe("true");
      expect(local.runs.get("json")).toBe(1);
      expect(await payments(key)).toBe(1);
      await shaky.close();
    });

    test("that runs unprotected is not run again when the answer to COMMIT was lost", async () => {
      const losing = withCrashPoints(database(), (point) => {
        if (point === "after-commit") throw Object.assign(new Error("gone"), { code: "ECONNRESET" });
      });
      const local = stage();
      const shaky = await framework.start(scenarios(local), { database: losing });
      const answer = await call(`${shaky.url}/free`, { body: {} });
      expect(answer.status).toBe(503);
      expect(local.runs.get("free")).toBe(1);
      await shaky.close();
    });

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
      { other: { script: (io) => io.json(201, {}) } },
      { database: database(), mismatchStatus: 422 },
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
      (error as { code?: string } | undefined)?.code,
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
