import { join } from "node:path";
import type { Pool } from "pg";
import { startPostgres } from "../../../../scripts/embedded-postgres.mjs";
import { openPool } from "../adapters/out/postgres/pool.ts";
import { migrateAll } from "../migrate.ts";

export interface DevDatabase {
  readonly connectionString: string;
  /** What to tell a person: where the rows are. */
  readonly description: string;
  stop(): Promise<void>;
}

/** The database of `DATABASE_URL`, or else a PostgreSQL of our own that keeps its data in `folder`. */
export const openDevDatabase = async (folder: string): Promise<DevDatabase> => {
  const given = process.env["DATABASE_URL"];
  if (given) {
    return { connectionString: given, description: "the database of DATABASE_URL", stop: async () => {} };
  }
  const postgres = await startPostgres({ dataDir: join(folder, "postgres") });
  const { connectionString, dataDir } = postgres;
  return {
    connectionString,
    description: `embedded PostgreSQL, data in ${dataDir}`,
    stop: () => postgres.stop(),
  };
};

/** A small pool for the transcript's own looks into the database, with both sets of tables in place. */
export const openMigrated = async (connectionString: string): Promise<Pool> => {
  const pool = openPool({ connectionString, size: 3, onError: () => {} });
  try {
    await migrateAll(pool);
    return pool;
  } catch (error) {
    await pool.end();
    throw error;
  }
};
