import { randomUUID } from "node:crypto";

import { defineSaga, localStep, refuse, sagaStatus, startSaga } from "idemkit";
import type { PoolClient } from "pg";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";

import { until } from "../../support/index.ts";
import { openShop, reserve, retry } from "./shop.ts";
import type { Checkout, CheckoutSaga, Shop } from "./shop.ts";

let shop: Shop;

beforeAll(async () => {
  shop = await openShop();
});
afterEach(() => shop.stopRunners());
afterAll(() => shop.close());

const reserved = localStep<Checkout, number, PoolClient>("reserve", {
  run: reserve(1),
  compensate: reserve(-1),
  retry,
});
const gift = localStep<Checkout, number, PoolClient>("add-gift", {
  run: reserve(1),
  compensate: reserve(-1),
  retry,
});

/** Its last step fails until it is told to refuse. */
function deployed(steps: CheckoutSaga["steps"], last: "broken" | "refused"): CheckoutSaga {
  const close = localStep<Checkout, null, PoolClient>("close", {
    run: () => Promise.reject(last === "broken" ? new Error("broken") : refuse("closed")),
    retry: { maxTries: 1000, baseMs: 1, maxMs: 5 },
  });
  return defineSaga("deployed", { steps: [...steps, close] });
}

test("a saga whose step is gone from the definition is left to a runner that knows it, and nothing is forgotten", async () => {
  const before = await shop.reserved();
  const sagaId = randomUUID();
  const old = deployed([reserved, gift], "broken");
  const told: string[] = [];
  const options = { pollMs: 10, leaseMs: 300, heartbeatMs: 50 };
  const logger = { error: (message: string) => void told.push(message) };
  await startSaga(shop.database, old, { input: {}, sagaId });
  shop.run(old, options);
  await until(async () => (await shop.reserved()) === before + 2);
  await shop.stopRunners();

  shop.run(deployed([reserved], "refused"), { ...options, logger });
  await until(() => told.length > 1);
  expect(new Set(told)).toEqual(
    new Set([expect.stringMatching(/saga deployed has no step add-gift, .*keep it/)]),
  );
  expect(await sagaStatus(shop.database, sagaId)).toMatchObject({ state: "running" });
  expect(await shop.reserved()).toBe(before + 2);

  shop.run(deployed([reserved, gift], "refused"), options);
  await until(async () => (await sagaStatus(shop.database, sagaId))?.state === "compensated");
  expect(await shop.reserved()).toBe(before);
});
