import { runOnce } from "idemkit";
import type { Isolation } from "idemkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { charge, chargeOf, isolations, paymentsDatabase } from "./support/payments.ts";
import type { Payments } from "./support/payments.ts";
import { gate, gatedLock, installLocks, stepwise, uselessLock, waitsForLock } from "./support/steps.ts";

let payments: Payments;
beforeAll(async () => {
  payments = await paymentsDatabase();
  await installLocks(payments.admin);
});
afterAll(() => payments[Symbol.asyncDispose]());

const modes = isolations.flatMap((isolation) => [
  { isolation, pipeline: false },
  { isolation, pipeline: true },
]);

/** The gate in the `gated` lock is shut while this session holds it. */
async function shutGate(): Promise<() => Promise<void>> {
  const client = await payments.admin.connect();
  await client.query("begin");
  await client.query("select pg_advisory_xact_lock(4711)");
  return async () => {
    await client.query("commit");
    client.release();
  };
}

describe.each(modes)("under $isolation, pipeline: $pipeline", ({ isolation, pipeline }) => {
  const name = (what: string): string => `${what}-${isolation}-${pipeline}`;

  test("a look-up older than the other's commit, its lock granted after it, ends in a replay", async () => {
    const key = name("old-snapshot");
    const openGate = await shutGate();
    const late = payments.process({ ...gatedLock, pipeline });
    let runs = 0;
    const second = runOnce(late, chargeOf(key, { isolation }), async (once) => {
      runs += 1;
      return charge(once, 20);
    });
    await waitsForLock(payments.admin, "pg_try_advisory_xact_lock");
    const first = await runOnce(payments.process({ pipeline }), chargeOf(key, { isolation }), charge);
    await openGate();

    expect(first).toMatchObject({ outcome: "executed", value: { amount: 10 } });
    expect(await second).toMatchObject({ outcome: "replayed", value: { amount: 10 } });
    expect(runs).toBe(1); // it did hold a claim; only its finish was refused
    expect(await payments.payments(key)).toEqual([{ key, amount: 10 }]);
  });

  test("of two attempts that both hold the claim, one commits and the other replays it", async () => {
    const key = name("two-claims");
    const [bothIn, runs] = [gate(), { count: 0 }];
    const attempt = (amount: number): ReturnType<typeof runOnce> => {
      const database = payments.process({ ...uselessLock, pipeline });
      return runOnce(database, chargeOf(key, { isolation }), async (once) => {
        const payment = await charge(once, amount);
        runs.count += 1;
        if (runs.count === 2) bothIn.open();
        await bothIn.opened;
        return payment;
      });
    };
    const outcomes = await Promise.all([attempt(10), attempt(20)]);

    expect(outcomes.map(({ outcome }) => outcome).toSorted()).toEqual(["executed", "replayed"]);
    const [one, two] = outcomes;
    expect(one).toMatchObject({ value: (two as { value: unknown }).value });
    expect(await payments.payments(key)).toEqual([(one as { value: unknown }).value]);
  });

  test("a finish that waits for the other's open finish is refused when that commits", async () => {
    const key = name("waiting-finish");
    const first = stepwise(payments.process({ ...uselessLock, pipeline }), "before-commit");
    const winner = runOnce(first.database, chargeOf(key, { isolation }), charge);
    await first.reached("before-commit");
    const loser = runOnce(
      payments.process({ ...uselessLock, pipeline }),
      chargeOf(key, { isolation }),
      (once) => charge(once, 20),
    );
    await waitsForLock(payments.admin, 'insert into "idemkit".idempotency_record');
    first.go("before-commit");

    expect(await winner).toMatchObject({ outcome: "executed" });
    expect(await loser).toMatchObject({ outcome: "replayed", value: { amount: 10 } });
    expect(await payments.payments(key)).toEqual([{ key, amount: 10 }]);
  });

  test("a finish that waits for the other's open finish commits when that rolls back", async () => {
    const key = name("waiting-finish-free");
    const first = stepwise(payments.process({ ...uselessLock, pipeline }), "before-commit");
    const doomed = runOnce(first.database, chargeOf(key, { isolation }), charge);
    await first.reached("before-commit");
    const other = runOnce(
      payments.process({ ...uselessLock, pipeline }),
      chargeOf(key, { isolation }),
      (once) => charge(once, 20),
    );
    await waitsForLock(payments.admin, 'insert into "idemkit".idempotency_record');
    await payments.admin.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and state = 'idle in transaction' and query ilike 'insert into "idemkit"%'`,
    );
    expect(await other).toMatchObject({ outcome: "executed", value: { amount: 20 } });
    first.go("before-commit");
    expect(await doomed).toMatchObject({ outcome: "replayed", value: { amount: 20 } });
    expect(await payments.payments(key)).toEqual([{ key, amount: 20 }]);
  });
});

test.each<Isolation>(["repeatable read", "serializable"])(
  "a record of another command that appears meanwhile under %s is a mismatch",
  async (isolation) => {
    const key = `mismatch-${isolation}`;
    const openGate = await shutGate();
    const second = runOnce(payments.process(gatedLock), chargeOf(key, { isolation, command: 2 }), charge);
    await waitsForLock(payments.admin, "pg_try_advisory_xact_lock");
    await runOnce(payments.process(), chargeOf(key, { isolation, command: 1 }), charge);
    await openGate();
    expect(await second).toEqual({ outcome: "mismatch" });
    expect(await payments.payments(key)).toHaveLength(1);
  },
);
