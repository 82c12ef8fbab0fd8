import { readdir, readFile } from "node:fs/promises";
import { DatabaseError } from "pg";
import type { Pool, PoolClient } from "pg";

const folder = new URL("../../../../migrations/", import.meta.url);
/** Any number will do, as long as every process of the service takes the same one. */
const MIGRATION_LOCK = 7_305_231_142;

/**
 * Applies the service's own numbered migrations, each once and in order; safe when several processes do it at the
 * same time. The library's tables are the business of its own `migrate`.
 */
export const migratePayments = async (pool: Pool): Promise<void> => {
  const files = (await readdir(folder)).filter((file) => file.endsWith(".sql")).toSorted();
  const client = await pool.connect();
  try {
    await client.query("begin");
    await client.query({ text: "select pg_advisory_xact_lock($1)", values: [MIGRATION_LOCK] });
    await applyMissing(client, files);
    await client.query("commit");
    client.release();
  } catch (error) {
    // The connection goes, and the open transaction with it.
    client.release(true);
    throw error;
  }
};

const applyMissing = async (client: PoolClient, files: readonly string[]): Promise<void> => {
  await client.query(`
    create table if not exists public.payments_migration (
      name       text        primary key,
      applied_at timestamptz not null default now()
    )`);
  const { rows } = await client.query<{ name: string }>("select name from public.payments_migration");
  const applied = new Set(rows.map((row) => row.name));
  for (const file of files.filter((name) => !applied.has(name))) {
    await client.query(await readFile(new URL(file, folder), "utf8")).catch((cause: unknown) => {
      throw new Error(`migration ${file} failed: ${whyOf(cause)}`, { cause });
    });
    await client.query({ text: "insert into public.payments_migration (name) values ($1)", values: [file] });
  }
};

const DUPLICATE_TABLE = "42P07";

const whyOf = (cause: unknown): string => {
  const message = cause instanceof Error ? cause.message : String(cause);
  return cause instanceof DatabaseError && cause.code === DUPLICATE_TABLE
    ? `${message}, and is not this service's: give DATABASE_URL a database of its own`
    : message;
};
