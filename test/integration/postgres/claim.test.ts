import { randomUUID } from "node:crypto";

import { runOnce } from "idemkit";
import type { Isolation } from "idemkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { charge, chargeOf, isolations, paymentsDatabase } from "./support/payments.ts";
import type { Payments } from "./support/payments.ts";
import { stepwise } from "./support/steps.ts";

let payments: Payments;
beforeAll(async () => {
  payments = await paymentsDatabase();
});
afterAll(() => payments[Symbol.asyncDispose]());

const settings = (
  isolation?: Isolation,
): Parameters<ReturnType<typeof payments.process>["records"]["claim"]>[1] => ({
  operationId: randomUUID(),
  retentionMs: 86_400_000,
  idleTimeoutMs: 10_000,
  lockTimeoutMs: 5000,
  isolation,
});

describe.each(isolations)("under %s", (isolation) => {
  test("replays of a finished key do not lock each other out", async () => {
    const identity = { scope: "customer-1", operation: "charge", key: `replays-${isolation}` };
    await runOnce(payments.process(), chargeOf(identity.key, { isolation }), charge);
    const pool = { max: 8 };
    const processes = Array.from({ length: 4 }, () => payments.process(pool));
    const claims = await Promise.all(
      Array.from({ length: 400 }, (_, i) => i).flatMap(() =>
        processes.map(({ records }) => records.claim(identity, settings(isolation))),
      ),
    );
    expect(claims.filter(({ claim }) => claim !== "found")).toEqual([]);
    expect(claims).toHaveLength(1600);
  });

  test("a key that another process runs is in progress, and asking holds no connection", async () => {
    const key = `elsewhere-${isolation}`;
    const running = stepwise(payments.process(), "before-finish");
    const first = runOnce(running.database, chargeOf(key, { isolation }), charge);
    await running.reached("before-finish");
    const pool = payments.test.pool({ max: 1 });
    const { fromPg } = await import("idemkit/pg");
    const other = fromPg(pool);
    expect(await runOnce(other, chargeOf(key, { isolation }), charge)).toEqual({ outcome: "in-progress" });
    await pool.query("select 1"); // the only connection is free
    running.go("before-finish");
    expect(await first).toMatchObject({ outcome: "executed" });
    expect(await runOnce(other, chargeOf(key, { isolation }), charge)).toMatchObject({ outcome: "replayed" });
    expect(await payments.payments(key)).toHaveLength(1);
  });

  test("a roll-back to a savepoint does not give the key's lock back", async () => {
    const key = `savepoint-${isolation}`;
    const first = await runOnce(payments.process(), chargeOf(key, { isolation }), async (once) => {
      await once.tx.query("savepoint part");
      await once.tx.query("insert into payment (key, amount) values ('lost', 1)");
      await once.tx.query("rollback to savepoint part");
      const meanwhile = await runOnce(payments.process(), chargeOf(key, { isolation }), charge);
      return { ...(await charge(once)), meanwhile: meanwhile.outcome };
    });
    expect(first).toMatchObject({ outcome: "executed", value: { meanwhile: "in-progress" } });
    expect(await payments.payments(key)).toHaveLength(1);
    expect(await payments.payments("lost")).toEqual([]);
  });

  test("commands of different keys do not abort each other", async () => {
    const keys = Array.from({ length: 200 }, (_, i) => `apart-${isolation}-${i}`);
    const database = payments.process({ max: 8 });
    let runs = 0;
    const outcomes = await Promise.all(
      keys.map((key) =>
        runOnce(database, chargeOf(key, { isolation }), async (once) => {
          runs += 1;
          return charge(once);
        }),
      ),
    );
    expect(new Set(outcomes.map(({ outcome }) => outcome))).toEqual(new Set(["executed"]));
    // With the record read inside a serializable transaction some six of seven of them abort.
    expect(runs - keys.length).toBeLessThan(10);
  });
});

test("sessions that are serializable by default are noticed, and their records read outside the transaction", async () => {
  const database = payments.process({ max: 8, options: "-c default_transaction_isolation=serializable" });
  let runs = 0;
  const call = (i: number): Promise<unknown> =>
    runOnce(database, chargeOf(`by-default-${i}`), async (once) => {
      runs += 1;
      return charge(once);
    });
  await call(0);
  await Promise.all(Array.from({ length: 200 }, (_, i) => call(i + 1)));
  expect(runs - 201).toBeLessThan(10);
});

test("one key of two customers, or of two operations, is two operations", async () => {
  const database = payments.process();
  const outcomes = await Promise.all([
    runOnce(database, chargeOf("same-key", { scope: "a" }), charge),
    runOnce(database, chargeOf("same-key", { scope: "b" }), charge),
    runOnce(database, chargeOf("same-key", { scope: "a", operation: "refund" }), charge),
  ]);
  expect(outcomes.map(({ outcome }) => outcome)).toEqual(["executed", "executed", "executed"]);
  expect(await payments.payments("same-key")).toHaveLength(3);
});

test("the bounds of the claim are the transaction's, and a session's own lock_timeout stands", async () => {
  const pool = payments.test.pool({ max: 1, options: "-c lock_timeout=1234" });
  const { fromPg } = await import("idemkit/pg");
  const shown = async (query: (text: string) => Promise<{ rows: unknown[] }>): Promise<unknown> =>
    (
      await query(`select current_setting('lock_timeout') as lock,
                          current_setting('idle_in_transaction_session_timeout') as idle`)
    ).rows[0];
  const inside = await runOnce(fromPg(pool), chargeOf("bounds", { idleTimeoutMs: 7000 }), ({ tx }) =>
    shown((text) => tx.query(text)),
  );
  expect(inside).toMatchObject({ value: { lock: "1234ms", idle: "7s" } });
  expect(await shown((text) => pool.query(text))).toEqual({ lock: "1234ms", idle: "0" });
  const bounded = await runOnce(payments.process(), chargeOf("bounds-2", { lockTimeoutMs: 3000 }), ({ tx }) =>
    shown((text) => tx.query(text)),
  );
  expect(bounded).toMatchObject({ value: { lock: "3s" } });
});

test("a statement that waits for a lock longer than lockTimeoutMs is an outage, not a fault", async () => {
  await payments.admin.query("insert into payment (key, amount) values ('held', 1)");
  const holder = await payments.admin.connect();
  await holder.query("begin");
  await holder.query("update payment set amount = 2 where key = 'held'");
  const waiting = runOnce(payments.process(), chargeOf("waits", { lockTimeoutMs: 50 }), ({ tx }) =>
    tx.query("update payment set amount = 3 where key = 'held'"),
  );
  await expect(waiting).rejects.toMatchObject({ code: "idempotency_unavailable", retryable: true });
  await holder.query("rollback");
  holder.release();
});
