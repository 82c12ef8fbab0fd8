import { runOnce } from "idemkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { lockOf } from "../../../dist/core/identity.js";
import { until } from "../../support/index.ts";
import { charge, chargeOf, paymentsDatabase } from "./support/payments.ts";
import type { Payments } from "./support/payments.ts";
import { gate, stepwise, waitsForLock } from "./support/steps.ts";

let payments: Payments;
beforeAll(async () => {
  payments = await paymentsDatabase();
});
afterAll(() => payments[Symbol.asyncDispose]());

describe.each([false, true])("pipeline: %s", (pipeline) => {
  const at = (what: string): string => `${what}-${String(pipeline)}`;

  test("a handler that pauses too long loses its transaction; another takes the key, and the late one is told 503", async () => {
    const key = at("paused");
    const [inside, woken] = [gate(), gate()];
    let runs = 0;
    const paused = runOnce(
      payments.process({ pipeline }),
      chargeOf(key, { idleTimeoutMs: 100 }),
      async (once) => {
        runs += 1;
        const payment = await charge(once);
        inside.open();
        await woken.opened;
        return payment;
      },
    );
    await inside.opened;
    const other = payments.process({ pipeline });
    const taken = await until(async () => {
      const outcome = await runOnce(other, chargeOf(key), (once) => charge(once, 20));
      return outcome.outcome === "in-progress" ? undefined : outcome;
    });
    woken.open();
    expect(taken).toMatchObject({ outcome: "executed", value: { amount: 20 } });
    await expect(paused).rejects.toMatchObject({ code: "idempotency_unavailable", retryable: true });
    expect(runs).toBe(1);
    expect(await payments.payments(key)).toEqual([{ key, amount: 20 }]);
  });

  test("a handler that uses its lost transaction is told 503, not the driver's error", async () => {
    const key = at("lost");
    const killed = runOnce(payments.process({ pipeline }), chargeOf(key), async (once) => {
      const { rows } = await once.tx.query<{ pid: number }>("select pg_backend_pid() as pid");
      await payments.admin.query("select pg_terminate_backend($1)", [rows[0]?.pid]);
      return charge(once);
    });
    await expect(killed).rejects.toMatchObject({ code: "idempotency_unavailable" });
    expect(await runOnce(payments.process(), chargeOf(key), charge)).toMatchObject({ outcome: "executed" });
    expect(await payments.payments(key)).toHaveLength(1);
  });

  test("an attempt cut off between its record and its COMMIT leaves neither, and is taken up again", async () => {
    const key = at("cut-off");
    const steps = stepwise(payments.process({ pipeline }), "before-commit");
    let runs = 0;
    const run = runOnce(steps.database, chargeOf(key, { idleTimeoutMs: 100 }), async (once) => {
      runs += 1;
      return charge(once, runs);
    });
    await steps.reached("before-commit");
    await until(async () => {
      const { rows } = await payments.admin.query(
        "select from pg_stat_activity where state = 'idle in transaction' and datname = current_database()",
      );
      return rows.length === 0;
    });
    expect(await payments.payments(key)).toEqual([]);
    steps.go("before-commit");
    expect(await run).toMatchObject({ outcome: "executed", value: { amount: 2 } });
    expect(await payments.payments(key)).toEqual([{ key, amount: 2 }]);
  });
});

test("an operation that is taken up elsewhere after a refused transaction is in progress, not an outage", async () => {
  const identity = { scope: "customer-1", operation: "charge", key: "taken-up" };
  await payments.admin.query("insert into payment (key, amount) values ('row', 1)");
  const next = await payments.admin.connect();
  await next.query("begin");
  let queued: Promise<unknown> = Promise.resolve();
  const outcome = await runOnce(
    payments.process(),
    chargeOf(identity.key, { isolation: "repeatable read" }),
    async ({ tx }) => {
      await tx.query("select amount from payment where key = 'row'");
      await payments.admin.query("update payment set amount = amount + 1 where key = 'row'");
      // The next in the queue gets the key's lock as soon as this transaction is refused.
      queued = next.query("select pg_advisory_xact_lock($1)", [lockOf("idemkit", identity)]);
      await waitsForLock(payments.admin, "select pg_advisory_xact_lock");
      await tx.query("update payment set amount = 0 where key = 'row'");
    },
  );
  await queued;
  expect(outcome).toEqual({ outcome: "in-progress" });
  await next.query("rollback");
  next.release();
});
