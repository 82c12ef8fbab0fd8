import { randomUUID } from "node:crypto";

import { absent, defineSaga, done, localStep, sagaStatus, step } from "idemkit";
import type { PostgresDatabase } from "idemkit";
import { fromPg } from "idemkit/pg";
import { withEffectCrashPoints } from "idemkit/testing";
import type { PoolClient } from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";

import { openShop, reserve, retry } from "./shop.ts";
import type { Checkout, Shop } from "./shop.ts";

let shop: Shop;
let database: PostgresDatabase<PoolClient>;

beforeAll(async () => {
  shop = await openShop();
  ({ database } = shop);
});
afterEach(() => shop.stopRunners());
afterAll(() => shop.close());

const once = { ...retry, maxTries: 1 };
const reserved = localStep<Checkout, number, PoolClient>("reserve", {
  run: reserve(1),
  compensate: reserve(-1),
  retry,
});

describe("a saga whose pivot is done", () => {
  test("goes on where the pivot's last try failed behind its COMMIT", async () => {
    const before = await shop.reserved();
    let phases = 0;
    const definition = defineSaga<Checkout, PoolClient>("behind-commit", {
      steps: [reserved, localStep("confirm", { run: reserve(1), pivot: true, retry: once })],
    });
    const cut = withEffectCrashPoints(fromPg(shop.pool), (point) => {
      if (point === "after-phase" && (phases += 1) === 2) throw new Error("the answer to COMMIT was lost");
    });
    const sagaId = randomUUID();
    shop.run(definition, { pollMs: 10 }, cut);
    await shop.started(definition, sagaId);
    expect(await sagaStatus(database, sagaId)).toMatchObject({ state: "committed" });
    expect(phases).toBe(2);
    expect(await shop.reserved()).toBe(before + 2);
  });

  test("goes on where a call that was given up turns out to have been the pivot", async () => {
    const before = await shop.reserved();
    const charges = new Set<string>();
    let looks = 0;
    const definition = defineSaga<Checkout, PoolClient>("late-pivot", {
      steps: [
        reserved,
        step("charge", {
          run: () => Promise.reject(new Error("timed out")),
          recover: ({ key }) => {
            const found = charges.has(key) ? done(key) : absent;
            // Each of the three calls is looked up; the charge lands behind the look that decides whether to turn round.
            if ((looks += 1) === 4) charges.add(key);
            return Promise.resolve(found);
          },
          honoursKeys: true,
          deadlineMs: 50,
          graceMs: 50,
          pivot: true,
          retry: once,
        }),
      ],
    });
    expect(await shop.ended(definition)).toMatchObject({ state: "committed" });
    expect(charges.size).toBe(1);
    expect(await shop.reserved()).toBe(before + 1);
  });

  test("turns round where the open pivot turns out never to have happened", async () => {
    const before = await shop.reserved();
    const definition = defineSaga<Checkout, PoolClient>("absent-pivot", {
      steps: [
        reserved,
        step("charge", {
          run: () => Promise.reject(new Error("timed out")),
          recover: () => Promise.resolve(absent),
          deadlineMs: 30,
          graceMs: 10,
          pivot: true,
          retry: once,
        }),
      ],
    });
    const failure = { reason: "retries-exhausted", step: "charge" };
    expect(await shop.ended(definition)).toMatchObject({ state: "compensated", failure });
    expect(await shop.reserved()).toBe(before);
  });
});

describe("a saga's tries and time", () => {
  test("count for each step by itself", async () => {
    let first = 0;
    const seen: number[] = [];
    const definition = defineSaga<Checkout, PoolClient>("tries-by-step", {
      steps: [
        localStep("unlucky", {
          run: () => ((first += 1) < 3 ? Promise.reject(new Error("broken")) : Promise.resolve(null)),
          retry: { ...retry, maxTries: 5 },
        }),
        localStep("next", {
          run: async ({ sagaId }, tx) => {
            const { rows } = await tx.query<{ tries: number }>(
              "select tries from idemkit.saga where saga_id = $1",
              [sagaId],
            );
            seen.push(rows[0]?.tries ?? -1);
            return null;
          },
        }),
      ],
    });
    expect(await shop.ended(definition)).toMatchObject({ state: "committed" });
    expect(seen).toEqual([0]);
  });

  test("tell of each try that failed", async () => {
    const told: string[] = [];
    let tries = 0;
    const definition = defineSaga<Checkout, PoolClient>("told", {
      steps: [
        localStep("unlucky", {
          run: () => ((tries += 1) < 3 ? Promise.reject(new Error("broken")) : Promise.resolve(null)),
          retry,
        }),
      ],
    });
    const logger = { error: (message: string) => void told.push(message) };
    expect(await shop.ended(definition, randomUUID(), { logger })).toMatchObject({ state: "compensated" });
    expect(told).toHaveLength(2);
    expect(told[0]).toMatch(/^idemkit: step unlucky of saga told failed .*: broken$/);
  });

  test("end it past its deadline, before the pivot", async () => {
    const before = await shop.reserved();
    const definition = defineSaga<Checkout, PoolClient>("late", {
      deadlineMs: 100,
      steps: [
        reserved,
        localStep("broken", {
          run: () => Promise.reject(new Error("broken")),
          retry: { ...retry, maxTries: 1000 },
        }),
      ],
    });
    expect(await shop.ended(definition)).toMatchObject({
      state: "compensated",
      failure: { reason: "deadline" },
    });
    expect(await shop.reserved()).toBe(before);
  });

  test("leave a saga alone that has nothing more to do when its deadline passes", async () => {
    const definition = defineSaga<Checkout, PoolClient>("done-but-late", { steps: [reserved] });
    const before = await shop.reserved();
    const sagaId = randomUUID();
    let isFirst = true;
    // The runner dies between the last step and the end.
    const dies = withEffectCrashPoints(fromPg(shop.pool), async (point) => {
      if (point !== "before-completion" || !isFirst) return;
      isFirst = false;
      await shop.pool.query("update idemkit.saga set deadline_at = clock_timestamp() where saga_id = $1", [
        sagaId,
      ]);
      throw new Error("killed");
    });
    shop.run(definition, { pollMs: 10, leaseMs: 300, heartbeatMs: 50 }, dies);
    await shop.started(definition, sagaId);
    expect(await sagaStatus(database, sagaId)).toMatchObject({ state: "committed" });
    expect(await shop.reserved()).toBe(before + 1);
  });
});
