import { createPool } from "./pool.ts";
import { databaseUrl, runSql } from "./server.ts";

/** Where the databases of one run come from. All their names begin with the prefix. */
export interface DatabaseSource {
  serverUrl: string;
  prefix: string;
}

export function templateOf({ prefix }: DatabaseSource): string {
  return `${prefix}_template`;
}

async function migrateTemplate(connectionString: string): Promise<void> {
  const [{ migrate }, { fromPg }] = await Promise.all([import("idemkit"), import("idemkit/pg")]);
  const pool = createPool(connectionString, { max: 2 });
  try {
    await migrate(fromPg(pool));
  } finally {
    await pool.end();
  }
}

/** Makes the database that all others of the run are copies of. */
export async function createTemplate(source: DatabaseSource): Promise<void> {
  await runSql(source.serverUrl, `create database "${templateOf(source)}"`);
  await migrateTemplate(databaseUrl(source.serverUrl, templateOf(source)));
}
