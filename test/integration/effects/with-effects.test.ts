import { randomUUID } from "node:crypto";

import {
  absent,
  done,
  listUnfinished,
  refuse,
  resolveEffect,
  startRescuer,
  unknown,
  withEffects,
} from "idemkit";
import type { EffectOptions, OnceWithEffects, OperationWithEffects, PostgresDatabase, Stored } from "idemkit";
import { fromPg } from "idemkit/pg";
import type { Pool, PoolClient } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";

import { createDatabase, until } from "../../support/index.ts";
import type { TestDatabase } from "../../support/index.ts";
import { provider } from "./provider.ts";
import type { Provider } from "./provider.ts";

let created: TestDatabase;
let pool: Pool;
let database: PostgresDatabase<PoolClient>;

beforeAll(async () => {
  created = await createDatabase();
  pool = created.pool({ max: 5 });
  await pool.query("create table charge (operation_id uuid primary key, charge_id text not null)");
});
beforeEach(() => {
  database = fromPg(pool); // operations are named once for each database object
});
afterAll(() => created.drop());

/** Short, but long enough for a busy machine to keep a living lease alive. */
const fast = { leaseMs: 3000, heartbeatMs: 100 };
interface Charge {
  readonly amount: number;
}
type Once = OnceWithEffects<PoolClient>;
type Charged = Promise<{ readonly chargeId: string }>;

/** Charges through `psp`, then writes the charge in the final transaction. */
function charging(psp: Provider, more: Partial<EffectOptions<{ chargeId: string }>> = {}) {
  return async ({ amount }: Charge, { effect, transaction, operationId }: Once): Charged => {
    const { chargeId } = await effect("charge", {
      run: ({ key }) => psp.charge(key, amount),
      recover: async ({ key }) => {
        const found = await psp.lookUp(key);
        return found === undefined ? absent : done(found);
      },
      deadlineMs: 50,
      graceMs: 0,
      ...more,
    });
    await transaction((tx) => tx.query("insert into charge values ($1, $2)", [operationId, chargeId]));
    return { chargeId };
  };
}

type Charging = OperationWithEffects<Charge, Stored<{ readonly chargeId: string }>>;
const call = (key = randomUUID()) => ({ scope: "alice", key, command: { amount: 7 } });

/** A promise to settle by hand; `Promise.withResolvers` is missing in Node 20. */
function deferred<T>(): { readonly promise: Promise<T>; resolve(value: T): void } {
  let settle: ((value: T) => void) | undefined;
  const promise = new Promise<T>((resolve) => {
    settle = resolve;
  });
  return { promise, resolve: (value) => settle?.(value) };
}

async function chargesWritten(): Promise<number> {
  const { rows } = await pool.query("select count(*)::int as n from charge");
  return (rows[0] as { n: number }).n;
}

describe("an operation that calls another system", () => {
  test("makes the call once, commits its writes with its answer, and replays it", async () => {
    const psp = provider();
    const charge = withEffects(database, { operation: "charge" }, charging(psp));
    const before = await chargesWritten();
    const given = call();
    const first = await charge(given);
    const second = await charge(given);
    expect(first).toMatchObject({ outcome: "executed", disposition: "keep" });
    expect(second).toMatchObject({ outcome: "replayed", value: "value" in first ? first.value : undefined });
    expect(psp.total()).toBe(1);
    expect(await chargesWritten()).toBe(before + 1);
    expect(await charge({ ...given, command: { amount: 8 } })).toEqual({ outcome: "mismatch" });
  });

  test.each([
    ["after the charge", "after"],
    ["before the charge", "before"],
  ] as const)("finds out what became of a call that timed out %s", async (_name, fault) => {
    const psp = provider({ honoursKeys: false, faults: [fault] });
    const charge = withEffects(database, { operation: "charge" }, charging(psp));
    expect(await charge(call())).toMatchObject({ outcome: "executed" });
    expect(psp.total()).toBe(1);
  });

  test("repeats an open call under the same key where keys are honoured and nothing can be asked", async () => {
    const psp = provider({ faults: ["after", "before"] });
    const charge = withEffects(
      database,
      { operation: "charge" },
      charging(psp, { honoursKeys: true, recover: () => Promise.resolve(unknown) }),
    );
    expect(await charge(call())).toMatchObject({ outcome: "executed" });
    expect(psp.total()).toBe(1);
    expect(psp.charges.size).toBe(1);
  });

  test("holds no connection during a call", async () => {
    const one = created.pool({ max: 1 });
    const psp = provider();
    const charge = withEffects(fromPg(one), { operation: "charge" }, async (_command: Charge, { effect }) =>
      effect("charge", {
        run: async ({ key }) => {
          await one.query("select 1"); // would wait for ever
          return psp.charge(key, 1);
        },
      }),
    );
    expect(await charge(call())).toMatchObject({ outcome: "executed" });
  });

  test("stores another system's definitive no", async () => {
    let calls = 0;
    const charge = withEffects(database, { operation: "charge" }, (_command: Charge, { effect }) =>
      effect("charge", {
        run: () => {
          calls += 1;
          throw refuse({ declined: true });
        },
      }),
    );
    const given = call();
    const refusal = { disposition: "refuse", refusal: { declined: true } };
    expect(await charge(given)).toMatchObject({ outcome: "executed", ...refusal });
    expect(await charge(given)).toMatchObject({ outcome: "replayed", ...refusal });
    expect(calls).toBe(1);
  });

  test("goes on from its ledger after a throw, without repeating calls or phases", async () => {
    const psp = provider();
    let runs = 0;
    let phases = 0;
    const charge = withEffects(
      database,
      { operation: "charge" },
      async (_command: Charge, { effect, phase }) => {
        runs += 1;
        const pending = await phase("pending", () => Promise.resolve((phases += 1)));
        const { chargeId } = await effect("charge", { run: ({ key }) => psp.charge(key, 1) });
        if (runs === 1) throw new Error("crashed after the charge");
        return { chargeId, pending };
      },
    );
    const given = call();
    await expect(charge(given)).rejects.toThrow("crashed after the charge");
    expect(await charge(given)).toMatchObject({ outcome: "executed", value: { pending: 1 } });
    expect([psp.total(), phases, runs]).toEqual([1, 1, 2]);
  });

  test("refuses two effects of one name, and an effect inside the final transaction", async () => {
    const psp = provider();
    const twice = withEffects(database, { operation: "twice" }, async (_command: Charge, { effect }) => {
      await effect("a", { run: ({ key }) => psp.charge(key, 1) });
      return effect("a", { run: ({ key }) => psp.charge(key, 1) });
    });
    await expect(twice(call())).rejects.toMatchObject({ code: "effect_name_reused" });
    const inside = withEffects(
      database,
      { operation: "inside" },
      (_command: Charge, { effect, transaction }) =>
        transaction(() => effect("a", { run: ({ key }) => psp.charge(key, 1) })),
    );
    await expect(inside(call())).rejects.toMatchObject({ code: "effect_in_transaction" });
    expect(psp.total()).toBe(1);
  });
});

describe("an outcome that nobody knows", () => {
  function blind(psp: Provider): Charging {
    return withEffects(
      database,
      { operation: "charge" },
      charging(psp, { recover: () => Promise.resolve(unknown) }),
    );
  }

  test.each([
    ["done", { effect: "charge", as: "done", result: { chargeId: "by-hand" } }, 1, "by-hand"],
    ["absent", { effect: "charge", as: "absent" }, 2, undefined],
  ] as const)(
    "is uncertain, is not run again, and is resolved by hand as %s",
    async (_as, resolution, total, id) => {
      const psp = provider({ honoursKeys: false, faults: ["after"] });
      const charge = blind(psp);
      const given = call();
      const told = await charge(given);
      expect(told).toMatchObject({ outcome: "uncertain" });
      expect(await charge(given)).toEqual(told);
      expect(await charge({ ...given, command: { amount: 9 } })).toEqual({ outcome: "mismatch" });
      expect(psp.total()).toBe(1);

      const listed = await listUnfinished(database, { states: ["uncertain"] });
      const operationId = "operationId" in told ? told.operationId : "";
      expect(listed.find((each) => each.operationId === operationId)).toMatchObject({
        openEffects: ["charge"],
      });
      expect(await resolveEffect(database, operationId, resolution)).toBe(true);
      expect(await resolveEffect(database, operationId, resolution)).toBe(false);
      const ended = await charge(given);
      expect(ended).toMatchObject({ outcome: "executed" });
      if (id !== undefined) expect(ended).toMatchObject({ value: { chargeId: id } });
      expect(psp.total()).toBe(total);
    },
  );

  test("is known later: the rescuer asks again", async () => {
    const psp = provider({ honoursKeys: false, faults: ["after"] });
    let answers = false;
    const charge = withEffects(
      database,
      { operation: "charge" },
      charging(psp, {
        recover: async ({ key }) => {
          const found = answers ? await psp.lookUp(key) : undefined;
          return found === undefined ? unknown : done(found);
        },
      }),
    );
    const given = call();
    expect(await charge(given)).toMatchObject({ outcome: "uncertain" });
    answers = true;
    const rescued: string[] = [];
    const rescuer = startRescuer([charge], {
      everyMs: 20,
      uncertainEveryMs: 10,
      onRescued: ({ outcome }) => rescued.push(outcome),
    });
    await until(() => rescued.includes("executed"), { timeoutMs: 10_000 });
    await rescuer.stop();
    expect(await charge(given)).toMatchObject({ outcome: "replayed" });
    expect(psp.total()).toBe(1);
  });
});

describe("an attempt that lost its operation", () => {
  test("can neither intend, finish nor release; the one that took over answers", async () => {
    const psp = provider();
    const other = fromPg(pool); // another process
    const held = deferred<undefined>();
    const inCall = deferred<undefined>();
    let runs = 0;
    const handler = async (command: Charge, once: Once): Charged => {
      runs += 1;
      if (runs === 1) {
        // A paused process: its heartbeat stops too, as if its event loop had.
        await pool.query(
          "update idemkit.idempotency_record set lease_expires_at = now() where operation_id = $1",
          [once.operationId],
        );
        inCall.resolve(undefined);
        await held.promise;
      }
      return charging(psp)(command, once);
    };
    const slow = { leaseMs: 60_000, heartbeatMs: 20_000 };
    const charge = withEffects(database, { operation: "charge", ...slow }, handler);
    const elsewhere = withEffects(other, { operation: "charge", ...slow }, handler);
    const given = call();
    const before = await chargesWritten();
    const first = charge(given);
    await inCall.promise;
    const second = await elsewhere(given);
    held.resolve(undefined);
    expect(second).toMatchObject({ outcome: "executed" });
    expect(await first).toEqual({ outcome: "in-progress" });
    expect(await charge(given)).toMatchObject({ outcome: "replayed" });
    expect(psp.total()).toBe(1);
    expect(await chargesWritten()).toBe(before + 1);
  });

  test("is told by its signal when the heartbeat finds it out", async () => {
    const other = fromPg(pool);
    const aborted = deferred<unknown>();
    let runs = 0;
    const handler = async (_command: Charge, { signal, operationId }: Once): Promise<string> => {
      runs += 1;
      if (runs > 1) return "taken over";
      const end =
        "update idemkit.idempotency_record set lease_expires_at = '-infinity', attempt_id = gen_random_uuid()";
      await pool.query(`${end} where operation_id = $1`, [operationId]);
      signal.addEventListener("abort", () => aborted.resolve(signal.reason));
      return new Promise<string>(() => {});
    };
    const charge = withEffects(database, { operation: "charge", ...fast }, handler);
    const elsewhere = withEffects(other, { operation: "charge", ...fast }, handler);
    const given = call();
    const first = charge(given);
    await until(() => runs === 1, { timeoutMs: 5000 });
    expect(await aborted.promise).toMatchObject({ code: "attempt_lost" });
    expect(await first).toEqual({ outcome: "in-progress" });
    expect(await elsewhere(given)).toMatchObject({ outcome: "executed", value: "taken over" });
  });

  test("keeps its lease while it lives, longer than the lease", async () => {
    const other = fromPg(pool);
    const go = deferred<undefined>();
    const charge = withEffects(database, { operation: "charge", ...fast }, async (_command: Charge) => {
      await go.promise;
      return "done";
    });
    const elsewhere = withEffects(other, { operation: "charge", ...fast }, () => "stolen");
    const given = call();
    const first = charge(given);
    const lived = performance.now() + 1.5 * fast.leaseMs;
    await until(
      async () => {
        expect(await elsewhere(given)).toEqual({ outcome: "in-progress" });
        return performance.now() > lived;
      },
      { timeoutMs: 10_000 },
    );
    go.resolve(undefined);
    expect(await first).toMatchObject({ outcome: "executed", value: "done" });
  });
});
