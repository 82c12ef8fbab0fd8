import { createHash } from "node:crypto";

import { IdemkitError } from "../errors.ts";
import type { Call, PostgresDatabase, Session } from "./connections.ts";
import { checkPostgresDatabase } from "./database.ts";
import { migrations } from "./sql.generated.ts";
import { withSchema } from "./statement.ts";

/** What {@link migrate} did. */
export interface Migrated {
  /** The numbers of the migrations that were applied now. */
  readonly applied: readonly number[];
  /** Migrations of a newer idemkit that are there and do not break this one. */
  readonly newer: readonly number[];
}

/** Settings of {@link migrate}. */
export interface MigrateOptions {
  /** Told of migrations of a newer idemkit; by default a warning of the process. */
  readonly onWarning?: (message: string) => void;
}

/**
 * Creates idemkit's schema and tables, or brings them up to this version, in one transaction. Any number of processes
 * may call it at once: one works, the others wait and find nothing to do.
 * @throws IdemkitError `schema_newer` where a newer idemkit has changed the tables incompatibly.
 */
export async function migrate<Tx>(
  database: PostgresDatabase<Tx>,
  options: MigrateOptions = {},
): Promise<Migrated> {
  checkPostgresDatabase(database);
  // Not the session's default: a snapshot that is older than the lock would not see what the one before has installed.
  const { session } = await database.connections.begin(installLock(database.schema), "read committed");
  try {
    const done = await applyAll(session, database.schema);
    await session.commit();
    if (done.newer.length > 0) (options.onWarning ?? warn)(newerText(done.newer));
    return done;
  } catch (error) {
    await session.rollback();
    throw error;
  }
}

/** The statements of all migrations, as `npx idemkit migrate --print` shows them. */
export function migrationSql(schema = "idemkit"): string {
  const texts = migrations.flatMap(({ number, name, breaking, sql }) => [
    withSchema(sql, schema),
    withSchema(
      `insert into :"schema".migration (number, name, breaking) values (${number}, '${name}', ${String(breaking)});`,
      schema,
    ),
  ]);
  return ["begin;", ...ledger(schema), ...texts, "commit;", ""].join("\n\n");
}

function ledger(schema: string): readonly string[] {
  return [
    'create schema if not exists :"schema";',
    `create table if not exists :"schema".migration (
  number     integer primary key,
  name       text not null,
  breaking   boolean not null,
  applied_at timestamptz not null default now()
);`,
  ].map((sql) => withSchema(sql, schema));
}

/** One installer at a time: `create … if not exists` of two at once fails on the catalogue's unique indexes. */
function installLock(schema: string): Call {
  const lock = createHash("sha256").update(`idemkit.migrate\0${schema}`).digest().readBigInt64BE(0);
  return { text: "select pg_advisory_xact_lock($1::bigint)", values: [lock.toString()] };
}

async function applyAll(session: Session<unknown>, schema: string): Promise<Migrated> {
  await ensureLedger(session, schema);
  const { rows } = await session.run({
    text: withSchema('select number, breaking from :"schema".migration order by number', schema),
  });
  const known = new Set(migrations.map(({ number }) => number));
  const newer = rows.filter((row) => !known.has(row["number"] as number));
  if (newer.some((row) => row["breaking"] === true)) throw new IdemkitError("schema_newer");
  const there = new Set(rows.map((row) => row["number"]));
  const missing = migrations.filter(({ number }) => !there.has(number));
  for (const migration of missing) await apply(session, schema, migration);
  return { applied: missing.map(({ number }) => number), newer: newer.map((row) => row["number"] as number) };
}

/** A role that may use the schema but not create one must pass, so existence is asked first. */
async function ensureLedger(session: Session<unknown>, schema: string): Promise<void> {
  const { rows } = await session.run({
    text: `select exists (
      select from pg_catalog.pg_tables where schemaname = $1 and tablename = 'migration') as there`,
    values: [schema],
  });
  if (rows[0]?.["there"] === true) return;
  for (const text of ledger(schema)) await session.run({ text });
}

async function apply(
  session: Session<unknown>,
  schema: string,
  { number, name, breaking, sql }: (typeof migrations)[number],
): Promise<void> {
  await session.run({ text: withSchema(sql, schema) });
  await session.run({
    text: withSchema('insert into :"schema".migration (number, name, breaking) values ($1, $2, $3)', schema),
    values: [number, name, breaking],
  });
}

function newerText(newer: readonly number[]): string {
  return `idemkit's tables have migrations of a newer version (${newer.join(", ")}); they do not break this one`;
}

function warn(message: string): void {
  process.emitWarning(message, "IdemkitWarning");
}
