import type { Outcome } from "idemkit";
import { refuse, runOnce } from "idemkit";
import { fromPg } from "idemkit/pg";
import type pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { inProcessOf } from "../../../dist/core/in-process.js";
import { createPool, until } from "../../support/index.ts";
import { charge, chargeOf, paymentsDatabase } from "../postgres/support/payments.ts";
import type { Database, Payment, Payments } from "../postgres/support/payments.ts";
import { gate } from "../postgres/support/steps.ts";

let payments: Payments;
beforeAll(async () => {
  payments = await paymentsDatabase();
});
afterAll(() => payments[Symbol.asyncDispose]());

/** A pool and the most connections that were out of it at once. */
function measuredPool(max = 5): { pool: pg.Pool; most: () => number } {
  const pool = payments.test.pool({ max });
  let [out, most] = [0, 0];
  pool.on("acquire", () => {
    out += 1;
    most = Math.max(most, out);
  });
  pool.on("release", () => {
    out -= 1;
  });
  return { pool, most: () => most };
}

function expectNothingKept(database: Database): void {
  const { running, claiming, waiting } = inProcessOf(database);
  expect({ running: running.size, claiming: claiming.size, waiting: waiting.size }).toEqual({
    running: 0,
    claiming: 0,
    waiting: 0,
  });
}

const waits = { whileRunning: { waitMs: 60_000, maxWaiting: 1000 } };

describe("a storm of 300 duplicates of one key", () => {
  test("holds one connection beside the attempt's, and lets other keys through, in the attempt's process", async () => {
    const { pool, most } = measuredPool();
    const database = fromPg(pool);
    const [inside, may] = [gate(), gate()];
    const first = runOnce(database, chargeOf("hot"), async (once) => {
      inside.open();
      await may.opened;
      return charge(once);
    });
    await inside.opened;
    const storm = Array.from({ length: 300 }, () => runOnce(database, chargeOf("hot", waits), charge));
    await until(
      () => inProcessOf(database).waiting.get([...inProcessOf(database).running.keys()][0] ?? "") === 300,
    );
    expect([most(), pool.waitingCount]).toEqual([1, 0]);
    const other = await runOnce(database, chargeOf("cold"), charge);
    expect(other).toMatchObject({ outcome: "executed" });
    expect(most()).toBe(2);
    may.open();
    const { outcome: _, ...executed } = (await first) as Outcome<Payment> & { value: Payment };
    for (const each of await Promise.all(storm)) expect(each).toEqual({ ...executed, outcome: "replayed" });
    // One connection beside: the first of the duplicates reads the record, and the others share its answer.
    expect(most()).toBe(2);
    expect(await payments.payments("hot")).toHaveLength(1);
    expectNothingKept(database);
  });

  test("holds one connection in a process that does not run it", async () => {
    const [inside, may] = [gate(), gate()];
    const first = runOnce(payments.process(), chargeOf("hot-elsewhere"), async (once) => {
      inside.open();
      await may.opened;
      return charge(once);
    });
    await inside.opened;
    const { pool, most } = measuredPool();
    const database = fromPg(pool);
    const storm = Array.from({ length: 300 }, () =>
      runOnce(database, chargeOf("hot-elsewhere", waits), charge),
    );
    await until(() => inProcessOf(database).waiting.size === 1);
    expect(await runOnce(database, chargeOf("cold-elsewhere"), charge)).toMatchObject({
      outcome: "executed",
    });
    may.open();
    await first;
    for (const { outcome } of await Promise.all(storm)) expect(outcome).toBe("replayed");
    expect(most()).toBeLessThanOrEqual(2); // the storm's one, and the other key's
    expectNothingKept(database);
  });

  test("all at once, with nobody first, runs the handler once", async () => {
    const { pool, most } = measuredPool();
    const database = fromPg(pool);
    const storm = await Promise.all(
      Array.from({ length: 300 }, () => runOnce(database, chargeOf("stampede", waits), charge)),
    );
    expect(storm.filter(({ outcome }) => outcome === "executed")).toHaveLength(1);
    expect(storm.filter(({ outcome }) => outcome === "replayed")).toHaveLength(299);
    expect(most()).toBeLessThanOrEqual(2);
    expect(await payments.payments("stampede")).toHaveLength(1);
    expectNothingKept(database);
  });
});

describe("while an operation runs", () => {
  async function running(
    key: string,
  ): Promise<{ database: Database; end: (error?: Error) => void; first: Promise<unknown> }> {
    const database = payments.process();
    const [inside, may] = [gate(), gate()];
    let fault: Error | undefined;
    const first = runOnce(database, chargeOf(key), async (once) => {
      inside.open();
      await may.opened;
      if (fault) throw fault;
      return charge(once);
    });
    first.catch(() => undefined);
    await inside.opened;
    const end = (error?: Error): void => {
      fault = error;
      may.open();
    };
    return { database, end, first };
  }

  test("a duplicate is told so at once by default, and after waitMs where it may wait", async () => {
    const { database, end, first } = await running("waits");
    expect(await runOnce(database, chargeOf("waits"), charge)).toEqual({ outcome: "in-progress" });
    const started = performance.now();
    const waited = await runOnce(database, chargeOf("waits", { whileRunning: { waitMs: 80 } }), charge);
    expect(waited).toEqual({ outcome: "in-progress" });
    expect(performance.now() - started).toBeGreaterThanOrEqual(79);
    const other = payments.process();
    expect(await runOnce(other, chargeOf("waits", { whileRunning: { waitMs: 80 } }), charge)).toEqual({
      outcome: "in-progress",
    });
    end();
    await first;
    expectNothingKept(database);
    expectNothingKept(other);
  });

  test("no more duplicates wait than maxWaiting", async () => {
    const { database, end, first } = await running("capped");
    const options = chargeOf("capped", { whileRunning: { waitMs: 60_000, maxWaiting: 3 } });
    const waiting = Array.from({ length: 3 }, () => runOnce(database, options, charge));
    expect(await runOnce(database, options, charge)).toEqual({ outcome: "in-progress" });
    end();
    await first;
    for (const each of await Promise.all(waiting)) expect(each).toMatchObject({ outcome: "replayed" });
    expectNothingKept(database);
  });

  test("another command under its key is a mismatch at once, without a question to the database", async () => {
    const { database, end, first } = await running("other-command");
    const { claim, find } = database.records;
    const asked: string[] = [];
    Object.assign(database.records, {
      claim: (...given: Parameters<typeof claim>) => {
        asked.push("claim");
        return claim(...given);
      },
      find: (...given: Parameters<typeof find>) => {
        asked.push("find");
        return find(...given);
      },
    });
    const other = chargeOf("other-command", { ...waits, command: { amount: 11 } });
    expect(await runOnce(database, other, charge)).toEqual({ outcome: "mismatch" });
    expect(asked).toEqual([]);
    end();
    await first;
  });

  test("its failure lets one of those that wait run it", async () => {
    const { database, end, first } = await running("fails");
    const waiting = Array.from({ length: 20 }, () => runOnce(database, chargeOf("fails", waits), charge));
    end(new Error("no stock"));
    await expect(first).rejects.toThrow("no stock");
    const outcomes = (await Promise.all(waiting)).map(({ outcome }) => outcome);
    expect(outcomes.filter((outcome) => outcome === "executed")).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === "replayed")).toHaveLength(19);
    expectNothingKept(database);
  });

  test("its handler's own duplicate is told so, and does not wait for itself", async () => {
    const database = payments.process();
    const outcome = await runOnce(database, chargeOf("itself"), async () =>
      runOnce(database, chargeOf("itself"), () => "inner"),
    );
    expect(outcome).toMatchObject({ outcome: "executed", value: { outcome: "in-progress" } });
  });
});

test("a handler that takes longer than handlerTimeoutMs is rolled back, told by its signal, and may be tried again", async () => {
  const database = payments.process();
  const aborted = gate();
  const late = runOnce(database, chargeOf("slow", { handlerTimeoutMs: 50 }), async (once) => {
    await charge(once);
    once.signal.addEventListener("abort", aborted.open);
    await aborted.opened;
    return once.tx.query("select 1");
  });
  await expect(late).rejects.toMatchObject({ code: "handler_timed_out", retryable: true });
  await aborted.opened;
  expect(await runOnce(database, chargeOf("slow"), charge)).toMatchObject({ outcome: "executed" });
  expect(await payments.payments("slow")).toHaveLength(1);
  expectNothingKept(database);
});

test("a database that cannot be reached is told to everyone at once, and nothing is kept of it", async () => {
  const pool = createPool("postgres://nobody@127.0.0.1:1/none");
  const database = fromPg(pool);
  const calls = await Promise.allSettled(
    Array.from({ length: 50 }, () => runOnce(database, chargeOf("outage"), () => "never")),
  );
  const unavailable = { code: "idempotency_unavailable", retryable: true };
  for (const each of calls) expect(each).toMatchObject({ reason: unavailable });
  expectNothingKept(database);
  await pool.end();
});

test("nothing is kept in the process whatever becomes of many operations", async () => {
  const database = payments.process();
  const fates = [
    charge,
    () => Promise.reject(refuse("no")),
    () => Promise.reject(new Error("fault")),
    ({ tx }: Parameters<typeof charge>[0]) => tx.query("select 1 / 0"),
  ];
  const calls = Array.from({ length: 200 }, (_, i) =>
    runOnce(database, chargeOf(`fate-${i % 60}`, { ...waits, command: i % 7 === 0 ? 1 : 2 }), async (once) =>
      fates[i % 4]?.(once),
    ),
  );
  await Promise.allSettled(calls);
  expectNothingKept(database);
});
