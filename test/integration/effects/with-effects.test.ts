import { done, listUnfinished, refuse, resolveEffect, startRescuer, unknown, withEffects } from "idemkit";
import type { PostgresDatabase } from "idemkit";
import { fromPg } from "idemkit/pg";
import type { Pool, PoolClient } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";

import { createDatabase, until } from "../../support/index.ts";
import type { TestDatabase } from "../../support/index.ts";
import { call, charging } from "./charging.ts";
import type { Charge, Charging } from "./charging.ts";
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
