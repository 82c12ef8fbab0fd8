import type { Command, Isolation, Once, PostgresDatabase } from "idemkit";
import { fromPg } from "idemkit/pg";
import type pg from "pg";

import { createDatabase } from "../../../support/index.ts";
import type { TestDatabase } from "../../../support/index.ts";

export type Database = PostgresDatabase<pg.PoolClient>;
export type PaymentOnce = Once<pg.PoolClient>;

export const isolations: readonly Isolation[] = ["read committed", "repeatable read", "serializable"];

export interface Payment {
  readonly key: string;
  readonly amount: number;
}

/**
 * A database whose handlers charge payments. Nothing in it stops a second payment for a key: what happens twice shows.
 */
export interface Payments extends AsyncDisposable {
  readonly test: TestDatabase;
  /** Outside every operation, for looking and for stepping by hand. */
  readonly admin: pg.Pool;
  /** One process of a service, in effect: a database object knows nothing of another one's attempts. */
  process(options?: pg.PoolConfig): Database;
  payments(key: string): Promise<readonly Payment[]>;
  records(): Promise<number>;
}

export async function paymentsDatabase(): Promise<Payments> {
  const test = await createDatabase();
  const admin = test.pool({ max: 4 });
  await admin.query(
    "create table payment (id bigserial primary key, key text not null, amount int not null)",
  );
  return {
    test,
    admin,
    process: (options = {}) => fromPg(test.pool({ max: 5, ...options })),
    payments: async (key) => {
      const { rows } = await admin.query<Payment>("select key, amount from payment where key = $1", [key]);
      return rows;
    },
    records: async () => {
      const { rows } = await admin.query<{ n: number }>(
        "select count(*)::int as n from idemkit.idempotency_record",
      );
      return rows[0]?.n ?? 0;
    },
    [Symbol.asyncDispose]: test.drop,
  };
}

export function chargeOf(key: string, options: Partial<Command> = {}): Command {
  return { scope: "customer-1", operation: "charge", key, command: { amount: 10 }, ...options };
}

/** The handler: one payment, and its row as the value. */
export async function charge({ tx, key }: PaymentOnce, amount = 10): Promise<Payment> {
  const { rows } = await tx.query<Payment>(
    "insert into payment (key, amount) values ($1, $2) returning key, amount",
    [key, amount],
  );
  const [payment] = rows;
  if (payment === undefined) throw new Error("the insert returned nothing");
  return payment;
}
