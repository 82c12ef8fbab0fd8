import { migrate } from "idemkit";
import { fromPg } from "idemkit/pg";
import type { Pool } from "pg";
import { migratePayments } from "./adapters/out/postgres/migrate.ts";

/** Both sets of tables, the library's and the service's own; safe to run at every start, and by several at once. */
export const migrateAll = async (pool: Pool): Promise<void> => {
  await migrate(fromPg(pool));
  await migratePayments(pool);
};
