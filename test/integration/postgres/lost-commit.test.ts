import { refuse, runOnce } from "idemkit";
import { fromPg } from "idemkit/pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { createPool } from "../../support/index.ts";
import { startFaultProxy } from "./support/fault-proxy.ts";
import type { FaultProxy } from "./support/fault-proxy.ts";
import { charge, chargeOf, paymentsDatabase } from "./support/payments.ts";
import type { Payments } from "./support/payments.ts";

let payments: Payments;
let proxy: FaultProxy;
beforeAll(async () => {
  payments = await paymentsDatabase();
  proxy = await startFaultProxy(payments.test.connectionString);
});
afterAll(async () => {
  await proxy[Symbol.asyncDispose]();
  await payments[Symbol.asyncDispose]();
});

describe.each([false, true])("pipeline: %s", (pipeline) => {
  const at = (what: string): string => `${what}-${String(pipeline)}`;
  const through = (): ReturnType<typeof createPool> =>
    createPool(proxy.connectionString, { max: 3, pipeline });

  test("a COMMIT whose answer is lost is answered as executed, with what was stored", async () => {
    const pool = through();
    let runs = 0;
    proxy.failNext("commit", "answer-lost");
    const before = proxy.faults;
    const outcome = await runOnce(fromPg(pool), chargeOf(at("answer-lost")), async (once) => {
      runs += 1;
      return { ...(await charge(once)), run: runs };
    });
    expect(proxy.faults).toBe(before + 1);
    expect(outcome).toMatchObject({ outcome: "executed", value: { amount: 10, run: 1 } });
    expect(runs).toBe(1);
    expect(await payments.payments(at("answer-lost"))).toHaveLength(1);
    await pool.end();
  });

  test("a COMMIT that never arrived is found missing, and the command runs again", async () => {
    const pool = through();
    let runs = 0;
    proxy.failNext("commit", "not-sent");
    const outcome = await runOnce(fromPg(pool), chargeOf(at("not-sent")), async (once) => {
      runs += 1;
      return { ...(await charge(once)), run: runs };
    });
    expect(outcome).toMatchObject({ outcome: "executed", value: { amount: 10, run: 2 } });
    expect(await payments.payments(at("not-sent"))).toHaveLength(1);
    await pool.end();
  });

  test("behind a network that went dark the key is free again when the server ends the idle transaction", async () => {
    const pool = through();
    proxy.failNext("commit", "dark");
    const outcome = await runOnce(fromPg(pool), chargeOf(at("dark"), { idleTimeoutMs: 150 }), charge);
    expect(outcome).toMatchObject({ outcome: "executed" });
    expect(await payments.payments(at("dark"))).toHaveLength(1);
    await pool.end();
  });

  test("where that takes longer than the caller can wait, the answer is to come back with the same key", async () => {
    const pool = through();
    proxy.failNext("commit", "dark");
    const run = runOnce(fromPg(pool), chargeOf(at("dark-long"), { idleTimeoutMs: 60_000 }), charge);
    await expect(run).rejects.toMatchObject({ code: "idempotency_unavailable", retryable: true });
    expect(await payments.payments(at("dark-long"))).toEqual([]);
    await payments.admin.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where state = 'idle in transaction' and datname = current_database()",
    );
    await pool.end();
  });
});

test("where a handler cannot run again, a COMMIT that never arrived is left to the caller's retry", async () => {
  const { execute } = await import("../../../dist/core/execute.js");
  const { systemRuntime } = await import("../../../dist/internal/runtime.js");
  const { settingsOf } = await import("../../../dist/core/operation.js");
  const pool = createPool(proxy.connectionString, { max: 3 });
  let runs = 0;
  const execution = {
    database: fromPg(pool),
    identity: { scope: "customer-1", operation: "charge", key: "once-only" },
    fingerprint: new Uint8Array([1, 2]),
    settings: settingsOf({ operation: "charge" }),
    runtime: systemRuntime,
    run: async () => {
      runs += 1;
      return { disposition: "keep", answer: { status: null, headers: [], body: new Uint8Array(0) } } as const;
    },
    canRunAgain: () => false,
  };
  proxy.failNext("commit", "not-sent");
  await expect(execute(execution)).rejects.toMatchObject({ code: "idempotency_unavailable" });
  expect(runs).toBe(1);
  expect(await execute(execution)).toMatchObject({ outcome: "executed" });
  await pool.end();
});

test.each(["answer-lost", "not-sent"] as const)(
  "a refusal met by %s is stored once and answered as executed",
  async (fault) => {
    const pool = createPool(proxy.connectionString, { max: 3 });
    const key = `refusal-${fault}`;
    let runs = 0;
    proxy.failNext("refusal", fault);
    const before = proxy.faults;
    const outcome = await runOnce(fromPg(pool), chargeOf(key), async (once) => {
      runs += 1;
      await charge(once);
      throw refuse({ reason: "card-expired", run: runs });
    });
    const run = fault === "answer-lost" ? 1 : 2;
    expect(proxy.faults).toBe(before + 1);
    expect(outcome).toMatchObject({ outcome: "executed", disposition: "refuse", refusal: { run } });
    expect(await runOnce(fromPg(pool), chargeOf(key), charge)).toMatchObject({
      outcome: "replayed",
      refusal: { run },
    });
    expect(await payments.payments(key)).toEqual([]);
    await pool.end();
  },
);
