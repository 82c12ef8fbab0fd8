import type { PostgresDatabase } from "idemkit";
import { fromPg } from "idemkit/pg";
import type { Pool, PoolClient } from "pg";

import { createDatabase } from "../../support/index.ts";
import { tables } from "./scenarios.ts";

/** A database with the suite's tables, for tests of one framework. */
export interface Service extends AsyncDisposable {
  readonly pool: Pool;
  readonly database: PostgresDatabase<PoolClient>;
  payments(key: string): Promise<number>;
  recordOf(key: string): Promise<Record<string, unknown> | undefined>;
}

export async function createService(): Promise<Service> {
  const db = await createDatabase();
  const pool = db.pool({ max: 5 });
  await pool.query(tables);
  const rows = async (text: string, key: string): Promise<Record<string, unknown>[]> => {
    const result = await pool.query<Record<string, unknown>>(text, [key]);
    return result.rows;
  };
  return {
    pool,
    database: fromPg(pool),
    payments: async (key) => (await rows("select 1 from payment where key = $1", key)).length,
    recordOf: async (key) => (await rows("select * from idemkit.idempotency_record where key = $1", key))[0],
    [Symbol.asyncDispose]: () => db.drop(),
  };
}
