import { randomUUID } from "node:crypto";

import { defineSaga, localStep, refuse, runOnce, sagaStatus, startSaga } from "idemkit";
import type { PostgresDatabase } from "idemkit";
import type { PoolClient } from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";

import { cutOff, until } from "../../support/index.ts";
import { provider } from "../effects/provider.ts";
import { checkout, openShop, retry } from "./shop.ts";
import type { Checkout, Shop } from "./shop.ts";

let shop: Shop;
let database: PostgresDatabase<PoolClient>;

beforeAll(async () => {
  shop = await openShop();
  ({ database } = shop);
});
afterEach(() => shop.stopRunners());
afterAll(() => shop.close());

describe("a saga", () => {
  test("does its steps once each, in order, and commits", async () => {
    const charges = provider();
    const before = await shop.reserved();
    expect(await shop.ended(checkout("all-well", charges))).toMatchObject({ state: "committed" });
    expect(charges.total()).toBe(1);
    expect(await shop.reserved()).toBe(before + 1);
  });

  test("is started once for its id, and only if its transaction commits", async () => {
    const definition = checkout("started", provider());
    const sagaId = randomUUID();
    const start = (fails: boolean) =>
      runOnce(
        database,
        { scope: "alice", operation: "checkout", key: randomUUID(), command: {} },
        async ({ tx }) => {
          await startSaga(database, definition, { sagaId, input: { amount: 1 }, tx });
          if (fails) throw new Error("not today");
        },
      );
    await expect(start(true)).rejects.toThrow("not today");
    expect(await sagaStatus(database, sagaId)).toBeUndefined();
    await start(false);
    expect(await startSaga(database, definition, { sagaId, input: { amount: 1 } })).toEqual({
      sagaId,
      started: false,
    });
  });

  test("is not failed by an outage, which drivers tell of without any code", async () => {
    let runs = 0;
    const definition = defineSaga<Checkout, PoolClient>("outage", {
      steps: [
        localStep("reserve", {
          run: async (_context, tx) => {
            runs += 1;
            if (runs <= 3) cutOff(tx);
            // Before the client has noticed: only the rollback finds out.
            if (runs === 2) throw new Error("what the handler made of it");
            return tx.query("select 1").then(() => runs);
          },
          compensate: () => Promise.resolve(null),
          retry: { ...retry, maxTries: 1 },
        }),
      ],
    });
    expect(await shop.ended(definition)).toMatchObject({ state: "committed" });
    expect(runs).toBe(4);
  });

  test.each([
    ["refused", { reason: "sold-out" }],
    ["failing", { reason: "retries-exhausted", step: "confirm" }],
  ] as const)("is compensated in reverse order when a step is %s", async (confirm, failure) => {
    const charges = provider();
    const refunds = provider();
    const before = await shop.reserved();
    const status = await shop.ended(checkout(`confirm-${confirm}`, charges, { confirm, refunds }));
    expect(status).toMatchObject({ state: "compensated", failure });
    expect([charges.total(), refunds.total()]).toEqual([1, 1]);
    expect(await shop.reserved()).toBe(before);
  });

  test.each([
    ["after", 1],
    ["before", 1],
  ] as const)("finds out what became of a call that timed out %s its effect", async (fault, total) => {
    const charges = provider({ honoursKeys: false, faults: [fault] });
    expect(await shop.ended(checkout(`timed-out-${fault}`, charges))).toMatchObject({ state: "committed" });
    expect(charges.total()).toBe(total);
  });

  test("ends committed or fully compensated under random faults, with two runners", async () => {
    const faults = Array.from(
      { length: 200 },
      (_, i) => (["after", "none", "before", "none"] as const)[(i * 7) % 4] ?? "none",
    );
    const charges = provider({ faults: [...faults] });
    const refunds = provider({ faults: [...faults] });
    const before = await shop.reserved();
    let confirms = 0;
    const definition = defineSaga<Checkout, PoolClient>("random", {
      steps: [
        ...checkout("random", charges, { refunds }).steps.slice(0, 2),
        localStep("confirm", {
          run: () => {
            confirms += 1;
            if (confirms % 3 === 0) throw refuse({ reason: "sold-out" });
            return Promise.resolve(null);
          },
          retry,
        }),
      ],
    });
    shop.run(definition, { pollMs: 10 });
    shop.run(definition, { pollMs: 10 });
    const ids = Array.from({ length: 40 }, () => randomUUID());
    await Promise.all(ids.map((sagaId) => startSaga(database, definition, { sagaId, input: { amount: 1 } })));
    const states = new Map<string, number>();
    await until(
      async () => {
        const all = await Promise.all(ids.map((sagaId) => sagaStatus(database, sagaId)));
        states.clear();
        for (const status of all) {
          states.set(status?.state ?? "none", (states.get(status?.state ?? "none") ?? 0) + 1);
        }
        return (states.get("committed") ?? 0) + (states.get("compensated") ?? 0) === ids.length;
      },
      { timeoutMs: 25_000 },
    );
    const committed = states.get("committed") ?? 0;
    expect(await shop.reserved()).toBe(before + committed);
    expect(charges.total() - refunds.total()).toBe(committed);
    expect(committed).toBeGreaterThan(0);
    expect(committed).toBeLessThan(ids.length);
  });
});
