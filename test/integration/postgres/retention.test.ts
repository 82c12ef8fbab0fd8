import { runOnce, startMaintenance } from "idemkit";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";

import { startCluster, until } from "../../support/index.ts";
import { charge, chargeOf, isolations, paymentsDatabase } from "./support/payments.ts";
import type { Payments } from "./support/payments.ts";
import { stepwise, waitsForLock } from "./support/steps.ts";

let payments: Payments;
beforeAll(async () => {
  payments = await paymentsDatabase();
});
afterAll(() => payments[Symbol.asyncDispose]());

const quiet = { info: () => {}, error: () => {} };

async function expire(key: string): Promise<void> {
  await payments.admin.query(
    "update idemkit.idempotency_record set expires_at = now() - interval '1 second' where key like $1",
    [key],
  );
}

describe.each(isolations)("under %s", (isolation) => {
  test("an expired record is a new call, also with another command, and its row is taken over", async () => {
    const key = `expired-${isolation}`;
    const database = payments.process();
    await runOnce(database, chargeOf(key, { isolation }), charge);
    await expire(key);
    const again = await runOnce(database, chargeOf(key, { isolation, command: { amount: 20 } }), (once) =>
      charge(once, 20),
    );
    expect(again).toMatchObject({ outcome: "executed", value: { amount: 20 } });
    expect(await payments.payments(key)).toHaveLength(2);
    expect(await runOnce(database, chargeOf(key, { isolation }), charge)).toEqual({ outcome: "mismatch" });
  });

  test("an expired record is taken over by one of two, even where both hold the claim", async () => {
    const key = `expired-twice-${isolation}`;
    await runOnce(payments.process(), chargeOf(key, { isolation }), charge);
    await expire(key);
    const [one, two] = [stepwise(payments.process(), "before-finish"), payments.process()];
    const first = runOnce(one.database, chargeOf(key, { isolation }), (once) => charge(once, 1));
    await one.reached("before-finish");
    // The other writes its record by hand, as if the lock had not held it off.
    await payments.admin.query(
      `update idemkit.idempotency_record set expires_at = now() + interval '1 day', body = '"theirs"', operation_id = gen_random_uuid()
       where key = $1`,
      [key],
    );
    one.go("before-finish");
    expect(await first).toMatchObject({ outcome: "replayed", value: "theirs" });
    expect(await runOnce(two, chargeOf(key, { isolation }), charge)).toMatchObject({ value: "theirs" });
    expect(await payments.payments(key)).toHaveLength(1);
  });

  test.each(["commit", "rollback"])(
    "an expired record is taken over while the cleaner deletes it (%s)",
    async (end) => {
      const key = `cleaner-${end}-${isolation}`;
      await runOnce(payments.process(), chargeOf(key, { isolation }), charge);
      await expire(key);
      const cleaner = await payments.admin.connect();
      await cleaner.query("begin");
      await cleaner.query("delete from idemkit.idempotency_record where key = $1", [key]);
      const call = runOnce(payments.process(), chargeOf(key, { isolation }), (once) => charge(once, 20));
      await waitsForLock(payments.admin, 'insert into "idemkit".idempotency_record');
      await cleaner.query(end);
      cleaner.release();
      expect(await call).toMatchObject({ outcome: "executed", value: { amount: 20 } });
      expect(await runOnce(payments.process(), chargeOf(key, { isolation }), charge)).toMatchObject({
        outcome: "replayed",
      });
    },
  );

  test("the cleaner passes by a record that is being taken over", async () => {
    const key = `taken-over-${isolation}`;
    await runOnce(payments.process(), chargeOf(key, { isolation }), charge);
    await expire(key);
    const steps = stepwise(payments.process(), "before-commit");
    const call = runOnce(steps.database, chargeOf(key, { isolation }), charge);
    await steps.reached("before-commit");
    expect(await oneRound()).toBe(0);
    steps.go("before-commit");
    expect(await call).toMatchObject({ outcome: "executed" });
    expect(await oneRound()).toBe(0);
    expect(await runOnce(payments.process(), chargeOf(key, { isolation }), charge)).toMatchObject({
      outcome: "replayed",
    });
  });
});

/** One round of a cleaner, and what it deleted. */
async function oneRound(batchSize = 1000, database = payments.process()): Promise<number> {
  let running: ReturnType<typeof startMaintenance> | undefined;
  const count = await new Promise<number>((resolve) => {
    running = startMaintenance(database, { batchSize, logger: quiet, onDeleted: resolve });
  });
  await running?.stop();
  return count;
}

async function seed(prefix: string, expired: number, live: number): Promise<void> {
  await payments.admin.query(
    `insert into idemkit.idempotency_record
       (scope, operation, key, operation_id, fingerprint, disposition, headers, body, expires_at)
     select 'seed', 'charge', $1 || n, gen_random_uuid(), '\\x01', 'keep', '[]', '',
            now() + case when n <= $2::int then interval '-1 hour' else interval '1 hour' end
     from generate_series(1, $2::int + $3::int) n`,
    [prefix, expired, live],
  );
}

async function left(prefix: string): Promise<number> {
  const { rows } = await payments.admin.query<{ n: number }>(
    "select count(*)::int as n from idemkit.idempotency_record where key like $1",
    [`${prefix}%`],
  );
  return rows[0]?.n ?? -1;
}

test("the cleaner deletes every expired record, batch by batch, and no live one", async () => {
  await seed("batches-", 250, 30);
  const batches: number[] = [];
  const database = payments.process();
  const { query } = database.connections;
  Object.assign(database.connections, {
    query: async (call: Parameters<typeof query>[0]) => {
      const result = await query(call);
      if (call.name?.includes("delete-expired") === true) batches.push(result.count);
      return result;
    },
  });
  expect(await oneRound(100, database)).toBe(250);
  expect(batches).toEqual([100, 100, 50]);
  expect(await left("batches-")).toBe(30);
});

test("several cleaners at once share the work and delete each record once", async () => {
  await seed("shared-", 3000, 10);
  const counts = await Promise.all([oneRound(50), oneRound(50), oneRound(50), oneRound(50)]);
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(3000);
  expect(await left("shared-")).toBe(10);
});

test("the cleaner says how many it deleted, and nothing when there were none", async () => {
  await seed("said-", 3, 0);
  const said: string[] = [];
  const rounds: number[] = [];
  await using running = startMaintenance(payments.process(), {
    everyMs: 10,
    logger: { info: (text) => void said.push(text), error: (text) => void said.push(text) },
    onDeleted: (count) => void rounds.push(count),
  });
  await until(() => rounds.length > 2);
  await running.stop();
  expect(rounds[0]).toBe(3);
  expect(said).toEqual(["idemkit: deleted 3 expired records"]);
});

test("the cleaner ends when it is stopped, twice as well as once, and holds no connection", async () => {
  const pool = payments.test.pool({ max: 1 });
  const { fromPg } = await import("idemkit/pg");
  const running = startMaintenance(fromPg(pool), { everyMs: 1000, logger: quiet });
  await Promise.all([running.stop(), running.stop()]);
  await running.stop();
  await pool.query("select 1");
  expect(pool.waitingCount).toBe(0);
});

test("the cleaner outlives an outage of the database", async () => {
  await using cluster = await startCluster();
  const database = await cluster.createDatabase();
  const { fromPg } = await import("idemkit/pg");
  const pool = database.pool({ connectionTimeoutMillis: 1000 });
  const [errors, rounds]: [string[], number[]] = [[], []];
  await using running = startMaintenance(fromPg(pool), {
    everyMs: 10,
    logger: { info: () => {}, error: (text) => void errors.push(text) },
    onDeleted: (count) => void rounds.push(count),
  });
  await until(() => rounds.length > 0);
  await cluster.stop("immediate");
  const failed = (text: string): boolean => text.startsWith("idemkit: deleting expired records failed: ");
  await until(() => errors.some(failed));
  await cluster.start();
  const before = rounds.length;
  await until(() => rounds.length > before, { timeoutMs: 20_000 });
  await running.stop();
  expect(errors.filter(failed).length).toBeGreaterThan(0);
});

test.each([23, 73, 0.5])(
  "a retention of %d hours is refused, unless it is spelled out",
  async (retentionHours) => {
    const database = payments.process();
    await expect(runOnce(database, chargeOf("r", { retentionHours }), charge)).rejects.toMatchObject({
      code: "retention_out_of_range",
    });
    const meant = chargeOf(`r-${retentionHours}`, { retentionHours, allowUnsafeRetention: true });
    expect(await runOnce(database, meant, charge)).toMatchObject({ outcome: "executed" });
  },
);

test("a process whose own clock is ten days ahead or behind neither shortens a record's life nor lengthens it", async () => {
  for (const days of [-10, 10]) {
    const key = `clock-${days}`;
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + days * 86_400_000 });
    try {
      await runOnce(payments.process(), chargeOf(key), charge);
      expect(await runOnce(payments.process(), chargeOf(key), charge)).toMatchObject({ outcome: "replayed" });
    } finally {
      vi.useRealTimers();
    }
    expect(await oneRound()).toBe(0);
    expect(await runOnce(payments.process(), chargeOf(key), charge)).toMatchObject({ outcome: "replayed" });
    await expire(key);
    expect(await runOnce(payments.process(), chargeOf(key), charge)).toMatchObject({ outcome: "executed" });
  }
});

test.each([24, 48, 72])("a record lives for its %d hours by the database's clock", async (retentionHours) => {
  const key = `lives-${retentionHours}`;
  await runOnce(payments.process(), chargeOf(key, { retentionHours }), charge);
  const { rows } = await payments.admin.query<{ hours: number }>(
    `select round(extract(epoch from expires_at - clock_timestamp()) / 3600)::int as hours
     from idemkit.idempotency_record where key = $1`,
    [key],
  );
  expect(rows[0]?.hours).toBe(retentionHours);
});
