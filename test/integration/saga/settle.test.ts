import { randomUUID } from "node:crypto";

import { absent, defineSaga, done, sagaStatus, step, unknown } from "idemkit";
import type { PostgresDatabase, Recovered, SagaDefinition } from "idemkit";
import type { PoolClient } from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";

import { openShop } from "./shop.ts";
import type { Checkout, Shop } from "./shop.ts";

let shop: Shop;
let database: PostgresDatabase<PoolClient>;

beforeAll(async () => {
  shop = await openShop();
  ({ database } = shop);
});
afterEach(() => shop.stopRunners());
afterAll(() => shop.close());

interface Charge {
  readonly id: string;
}

/** A provider that honours keys, and whose network keeps calls back. */
interface SlowProvider {
  readonly charges: Map<string, Charge>;
  readonly refunds: Set<string>;
}

type Recover = (key: string, sagaId: string) => Promise<Recovered<Charge>>;

function charging(name: string, { charges, refunds }: SlowProvider, recover: Recover) {
  const charge = step<Checkout, Charge, PoolClient>("charge", {
    run: () => Promise.reject(new Error("timed out")),
    recover: ({ key, sagaId }) => recover(key, sagaId),
    compensate: ({ result }) => Promise.resolve(refunds.add(result.id).size),
    honoursKeys: true,
    deadlineMs: 50,
    graceMs: 100,
    retry: { maxTries: 1, baseMs: 1, maxMs: 5 },
  });
  const definition: SagaDefinition<Checkout, PoolClient> = defineSaga(name, { steps: [charge] });
  const land = (key: string): unknown => charges.set(key, { id: `ch-${key}` });
  const asked = (key: string): Recovered<Charge> => {
    const found = charges.get(key);
    return found === undefined ? absent : done(found);
  };
  return { definition, land, asked };
}

const isCompensating = async (sagaId: string): Promise<boolean> =>
  (await sagaStatus(database, sagaId))?.state === "compensating";

describe("what is left open when a saga turns round", () => {
  test("is undone also when it arrives late at a system that honours keys", async () => {
    const books = { charges: new Map<string, Charge>(), refunds: new Set<string>() };
    const sagaId = randomUUID();
    let looks = 0;
    const { definition, land, asked } = charging("late-call", books, async (key, id) => {
      const found = asked(key);
      // The call was on the wire all the time, and gets there right behind the first look that matters.
      if ((await isCompensating(id)) && (looks += 1) === 1) land(key);
      return found;
    });
    expect(await shop.ended(definition, sagaId)).toMatchObject({ state: "compensated" });
    expect([...books.refunds]).toEqual([...books.charges.values()].map(({ id }) => id));
    expect(books.charges.size).toBe(1);
  });

  test("is undone also when it is the call that should have told which arrives late", async () => {
    const books = { charges: new Map<string, Charge>(), refunds: new Set<string>() };
    const sagaId = randomUUID();
    let looks = 0;
    const { definition, land, asked } = charging("late-repeat", books, async (key, id) => {
      const found = asked(key);
      if (!(await isCompensating(id))) return found;
      looks += 1;
      if (looks === 1) {
        // Nobody can tell for long; then the key is sent again, and that call is kept back as well.
        await shop.pool.query(
          "update idemkit.saga_step set intended_at = intended_at - interval '1 hour' where saga_id = $1",
          [id],
        );
        return unknown;
      }
      if (looks === 2) land(key);
      return found;
    });
    expect(await shop.ended(definition, sagaId)).toMatchObject({ state: "compensated" });
    expect([...books.refunds]).toEqual([...books.charges.values()].map(({ id }) => id));
    expect(books.charges.size).toBe(1);
  });
});
