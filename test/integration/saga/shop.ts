import { randomUUID } from "node:crypto";

import {
  absent,
  defineSaga,
  done,
  localStep,
  refuse,
  sagaStatus,
  startSaga,
  startSagas,
  step,
  unknown,
} from "idemkit";
import type { PostgresDatabase, Running, SagaDefinition, SagasOptions, SagaStatus } from "idemkit";
import { fromPg } from "idemkit/pg";
import type { Pool, PoolClient } from "pg";

import { createDatabase, until } from "../../support/index.ts";
import { provider } from "../effects/provider.ts";
import type { Provider } from "../effects/provider.ts";

export type Checkout = Readonly<Record<string, number>>;
export type CheckoutSaga = SagaDefinition<Checkout, PoolClient>;

export const retry = { maxTries: 2, baseMs: 1, maxMs: 5 };

/** Takes so many more of the one thing in stock, or gives them back. */
export function reserve(by: number) {
  return (_context: unknown, tx: PoolClient) =>
    tx.query("update stock set reserved = reserved + $1 where sku = 'book'", [by]).then(() => by);
}

interface Fate {
  readonly confirm?: "refused" | "failing";
  readonly refunds?: Provider;
  readonly blind?: boolean;
}

/** Reserve stock here, charge there, confirm here. */
export function checkout(
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

/** A database with something in stock, and runners of sagas. */
export interface Shop {
  readonly pool: Pool;
  readonly database: PostgresDatabase<PoolClient>;
  /** How many of the one thing in stock are reserved. */
  reserved(): Promise<number>;
  /** Starts a saga and a runner for it, and waits until nothing more happens by itself. */
  ended(definition: CheckoutSaga, sagaId?: string, options?: SagasOptions): Promise<SagaStatus | undefined>;
  /** Starts a saga, and waits until nothing more happens by itself. */
  started(definition: CheckoutSaga, sagaId: string): Promise<void>;
  run(definition: CheckoutSaga, options: SagasOptions, on?: PostgresDatabase<PoolClient>): void;
  stopRunners(): Promise<void>;
  close(): Promise<void>;
}

export async function openShop(): Promise<Shop> {
  const created = await createDatabase();
  const pool = created.pool({ max: 8 });
  const database = fromPg(pool);
  const running: Running[] = [];
  await pool.query("create table stock (sku text primary key, reserved integer not null)");
  await pool.query("insert into stock values ('book', 0)");

  const run = (definition: CheckoutSaga, options: SagasOptions, on = fromPg(pool)): void => {
    // A port of its own, as another process has it.
    running.push(startSagas(on, [definition], { logger: { error: () => {} }, ...options }));
  };
  const started = async (definition: CheckoutSaga, sagaId: string): Promise<void> => {
    await startSaga(database, definition, { sagaId, input: { amount: 5 } });
    const ends = new Set(["committed", "compensated", "uncertain"]);
    await until(async () => ends.has((await sagaStatus(database, sagaId))?.state ?? ""), {
      timeoutMs: 15_000,
    });
  };
  return {
    pool,
    database,
    run,
    started,
    reserved: async () => {
      const { rows } = await pool.query("select reserved from stock");
      return (rows[0] as { reserved: number }).reserved;
    },
    ended: async (definition, sagaId = randomUUID(), options = {}) => {
      run(definition, { pollMs: 10, ...options });
      await started(definition, sagaId);
      return sagaStatus(database, sagaId);
    },
    stopRunners: async () => {
      await Promise.all(running.splice(0).map((runner) => runner.stop()));
    },
    close: () => created.drop(),
  };
}
