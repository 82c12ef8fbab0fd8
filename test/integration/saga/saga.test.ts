import { randomUUID } from "node:crypto";

import {
  absent,
  defineSaga,
  done,
  localStep,
  refuse,
  resolveSagaStep,
  runOnce,
  sagaStatus,
  startSaga,
  startSagas,
  step,
  unknown,
} from "idemkit";
import type { PostgresDatabase, Running, SagaDefinition } from "idemkit";
import { fromPg } from "idemkit/pg";
import type { Pool, PoolClient } from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";

import { createDatabase, until } from "../../support/index.ts";
import type { TestDatabase } from "../../support/index.ts";
import { provider } from "../effects/provider.ts";
import type { Provider } from "../effects/provider.ts";

let created: TestDatabase;
let pool: Pool;
let database: PostgresDatabase<PoolClient>;
const running: Running[] = [];

beforeAll(async () => {
  created = await createDatabase();
  pool = created.pool({ max: 8 });
  database = fromPg(pool);
  await pool.query("create table stock (sku text primary key, reserved integer not null)");
  await pool.query("insert into stock values ('book', 0)");
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((runner) => runner.stop()));
});
afterAll(() => created.drop());

type Checkout = Readonly<Record<string, number>>;
type CheckoutSaga = SagaDefinition<Checkout, PoolClient>;

const retry = { maxTries: 2, baseMs: 1, maxMs: 5 };

function reserve(by: number) {
  return (_context: unknown, tx: PoolClient) =>
    tx.query("update stock set reserved = reserved + $1 where sku = 'book'", [by]).then(() => by);
}

interface Fate {
  readonly confirm?: "refused" | "failing";
  readonly refunds?: Provider;
  readonly blind?: boolean;
}

/** Reserve stock here, charge there, confirm here. */
function checkout(
  name: string,
  charges: Provider,
  { confirm, refunds = provider(), blind = false }: Fate = {},
): CheckoutSaga {
  return defineSaga<Checkout, PoolClient>(name, {
    steps: [
      localStep("reserve", { run: reserve(1), compensate: reserve(-1), retry }),
      step<Checkout, { chargeId: string }, PoolClient>("charge", {
        run: ({ key, input }) => charges.charge(key, input["amount"] ?? 0),
        recover: async ({ key }) => {
          const found = blind ? undefined : await charges.lookUp(key);
          if (blind) return unknown;
          return found === undefined ? absent : done(found);
        },
        compensate: ({ key, result }) => refunds.charge(`${key}/${result.chargeId}`, 1),
        honoursKeys: !blind,
        deadlineMs: 50,
        graceMs: 0,
        retry,
      }),
      localStep("confirm", {
        run: () => {
          if (confirm === "refused") throw refuse({ reason: "sold-out" });
          if (confirm === "failing") throw new Error("broken");
          return Promise.resolve("confirmed");
        },
        retry,
      }),
    ],
  });
}

async function ended(definition: CheckoutSaga, sagaId: string = randomUUID()) {
  running.push(startSagas(database, [definition], { pollMs: 10 }));
  await startSaga(database, definition, { sagaId, input: { amount: 5 } });
  await until(
    async () =>
      ["committed", "compensated", "uncertain"].includes((await sagaStatus(database, sagaId))?.state ?? ""),
    {
      timeoutMs: 15_000,
    },
  );
  return sagaStatus(database, sagaId);
}

async function reserved(): Promise<number> {
  const { rows } = await pool.query("select reserved from stock");
  return (rows[0] as { reserved: number }).reserved;
}

describe("a saga", () => {
  test("does its steps once each, in order, and commits", async () => {
    const charges = provider();
    const before = await reserved();
    expect(await ended(checkout("all-well", charges))).toMatchObject({ state: "committed" });
    expect(charges.total()).toBe(1);
    expect(await reserved()).toBe(before + 1);
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

  test.each([
    ["refused", { reason: "sold-out" }],
    ["failing", { reason: "retries-exhausted", step: "confirm" }],
  ] as const)("is compensated in reverse order when a step is %s", async (confirm, failure) => {
    const charges = provider();
    const refunds = provider();
    const before = await reserved();
    const status = await ended(checkout(`confirm-${confirm}`, charges, { confirm, refunds }));
    expect(status).toMatchObject({ state: "compensated", failure });
    expect([charges.total(), refunds.total()]).toEqual([1, 1]);
    expect(await reserved()).toBe(before);
  });

  test.each([
    ["after", 1],
    ["before", 1],
  ] as const)("finds out what became of a call that timed out %s its effect", async (fault, total) => {
    const charges = provider({ honoursKeys: false, faults: [fault] });
    expect(await ended(checkout(`timed-out-${fault}`, charges))).toMatchObject({ state: "committed" });
    expect(charges.total()).toBe(total);
  });

  test("is uncertain where nobody knows, and does nothing more", async () => {
    const charges = provider({ honoursKeys: false, faults: ["after"] });
    const before = await reserved();
    expect(await ended(checkout("blind", charges, { blind: true }))).toMatchObject({ state: "uncertain" });
    expect(charges.total()).toBe(1);
    expect(await reserved()).toBe(before + 1);
  });

  test.each([
    ["done", "committed", 1],
    ["absent", "committed", 2],
  ] as const)("goes on once an uncertain step is resolved by hand as %s", async (as, state, total) => {
    const charges = provider({ honoursKeys: false, faults: ["after"] });
    const definition = checkout(`resolved-${as}`, charges, { blind: true });
    const sagaId = randomUUID();
    expect(await ended(definition, sagaId)).toMatchObject({ state: "uncertain" });
    const resolution = { stepName: "charge", as, result: { chargeId: "by-hand" } };
    expect(await resolveSagaStep(database, sagaId, resolution)).toBe(true);
    await until(async () => (await sagaStatus(database, sagaId))?.state === state, { timeoutMs: 15_000 });
    expect(charges.total()).toBe(total);
    expect(await resolveSagaStep(database, sagaId, resolution)).toBe(false);
  });

  test("ends committed or fully compensated under random faults, with two runners", async () => {
    const faults = Array.from(
      { length: 200 },
      (_, i) => (["after", "none", "before", "none"] as const)[(i * 7) % 4] ?? "none",
    );
    const charges = provider({ faults: [...faults] });
    const refunds = provider({ faults: [...faults] });
    const before = await reserved();
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
    running.push(
      startSagas(database, [definition], { pollMs: 10 }),
      startSagas(fromPg(pool), [definition], { pollMs: 10 }),
    );
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
    expect(await reserved()).toBe(before + committed);
    expect(charges.total() - refunds.total()).toBe(committed);
    expect(committed).toBeGreaterThan(0);
    expect(committed).toBeLessThan(ids.length);
  });
});
