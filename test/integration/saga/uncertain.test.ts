import { randomUUID } from "node:crypto";

import { defineSaga, done, localStep, refuse, resolveSagaStep, sagaStatus, step, unknown } from "idemkit";
import type { PostgresDatabase } from "idemkit";
import type { PoolClient } from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";

import { until } from "../../support/index.ts";
import { provider } from "../effects/provider.ts";
import { checkout, openShop, reserve } from "./shop.ts";
import type { Checkout, Shop } from "./shop.ts";

let shop: Shop;
let database: PostgresDatabase<PoolClient>;

beforeAll(async () => {
  shop = await openShop();
  ({ database } = shop);
});
afterEach(() => shop.stopRunners());
afterAll(() => shop.close());

describe("an uncertain saga", () => {
  test("is uncertain where nobody knows, and does nothing more", async () => {
    const charges = provider({ honoursKeys: false, faults: ["after"] });
    const before = await shop.reserved();
    expect(await shop.ended(checkout("blind", charges, { blind: true }))).toMatchObject({
      state: "uncertain",
    });
    expect(charges.total()).toBe(1);
    expect(await shop.reserved()).toBe(before + 1);
  });

  test.each([
    ["done", "committed", 1],
    ["absent", "committed", 2],
  ] as const)("goes on once an uncertain step is resolved by hand as %s", async (as, state, total) => {
    const charges = provider({ honoursKeys: false, faults: ["after"] });
    const definition = checkout(`resolved-${as}`, charges, { blind: true });
    const sagaId = randomUUID();
    expect(await shop.ended(definition, sagaId)).toMatchObject({ state: "uncertain" });
    const resolution = { stepName: "charge", as, result: { chargeId: "by-hand" } };
    expect(await resolveSagaStep(database, sagaId, resolution)).toBe(true);
    await until(async () => (await sagaStatus(database, sagaId))?.state === state, { timeoutMs: 15_000 });
    expect(charges.total()).toBe(total);
    expect(await resolveSagaStep(database, sagaId, resolution)).toBe(false);
  });

  test("goes on by itself once the other system can tell what became of an uncertain step", async () => {
    const charges = provider({ honoursKeys: false, faults: ["after"] });
    const sagaId = randomUUID();
    let isDown = true;
    let asked = 0;
    const definition = defineSaga<Checkout, PoolClient>("asked-again", {
      steps: [
        step("charge", {
          run: ({ key, input }) => charges.charge(key, input["amount"] ?? 0),
          recover: async ({ key }) => {
            asked += 1;
            const found = isDown ? undefined : await charges.lookUp(key);
            return found === undefined ? unknown : done(found);
          },
          deadlineMs: 50,
          graceMs: 0,
        }),
      ],
    });
    expect(await shop.ended(definition, sagaId, { uncertainEveryMs: 20 })).toMatchObject({
      state: "uncertain",
    });
    // It stays uncertain however often nobody knows.
    await until(() => asked >= 3);
    isDown = false;
    await until(async () => (await sagaStatus(database, sagaId))?.state === "committed");
    expect(charges.total()).toBe(1);
  });

  test("leaves an uncertain step that nobody can be asked about to a person", async () => {
    const charges = provider({ honoursKeys: false, faults: ["after"] });
    const sagaId = randomUUID();
    const charge = step<Checkout, unknown, PoolClient>("charge", {
      run: ({ key }) => charges.charge(key, 1),
      deadlineMs: 50,
      graceMs: 0,
    });
    const definition = defineSaga<Checkout, PoolClient>("nobody-to-ask", { steps: [charge] });
    expect(await shop.ended(definition, sagaId, { uncertainEveryMs: 10 })).toMatchObject({
      state: "uncertain",
    });
    const { rows } = await shop.pool.query("select wake_at from idemkit.saga where saga_id = $1", [sagaId]);
    expect(rows).toEqual([{ wake_at: Infinity }]);
  });

  test.each([
    ["done", 0],
    ["absent", 1],
  ] as const)("goes on once a refused compensation is resolved by hand as %s", async (as, refunded) => {
    const charges = provider();
    let refuses = true;
    let refunds = 0;
    const sagaId = randomUUID();
    const definition = defineSaga<Checkout, PoolClient>(`refund-refused-${as}`, {
      steps: [
        localStep("reserve", { run: reserve(1), compensate: reserve(-1) }),
        step<Checkout, { chargeId: string }, PoolClient>("charge", {
          run: ({ key, input }) => charges.charge(key, input["amount"] ?? 0),
          compensate: () => {
            if (refuses) throw refuse({ reason: "account closed" });
            refunds += 1;
            return Promise.resolve("refunded");
          },
          honoursKeys: true,
        }),
        localStep("confirm", { run: () => Promise.reject(refuse("sold-out")) }),
      ],
    });
    const before = await shop.reserved();
    expect(await shop.ended(definition, sagaId)).toMatchObject({ state: "uncertain" });
    refuses = false;
    const by = { as, result: "by bank transfer" };
    // What led to the compensation is no longer anybody's to change.
    expect(await resolveSagaStep(database, sagaId, { stepName: "confirm", ...by })).toBe(false);
    expect(await resolveSagaStep(database, sagaId, { stepName: "charge", ...by })).toBe(false);
    expect(
      await resolveSagaStep(database, sagaId, { stepName: "charge", direction: "compensation", ...by }),
    ).toBe(true);
    await until(async () => (await sagaStatus(database, sagaId))?.state === "compensated");
    expect(refunds).toBe(refunded);
    expect(await shop.reserved()).toBe(before);
  });
});
