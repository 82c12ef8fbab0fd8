import { invalid } from "../internal/options.ts";
import type { Connections, PostgresDatabase } from "./connections.ts";
import { recordStore } from "./record-store.ts";
import { classify } from "./sqlstate.ts";
import { withCommitHooks } from "./transaction.ts";
import { unrecordedStore } from "./unrecorded-store.ts";

/** Settings of {@link postgresDatabase}. */
export interface DatabaseOptions {
  /** Whether a commit with events wakes the relays. @defaultValue true */
  readonly notify?: boolean | undefined;
}

/**
 * The database, where it is one on PostgreSQL.
 * @throws IdemkitError `option_invalid`.
 */
export function checkPostgresDatabase<D extends object>(database: D): D {
  if (typeof database !== "object" || database === null || !("connections" in database)) {
    throw invalid("database", "must be one on PostgreSQL, such as fromPg(pool)");
  }
  return database;
}

/** A database on any client that implements the statement port. */
export function postgresDatabase<Tx>(
  given: Connections<Tx>,
  schema = "idemkit",
  { notify = true }: DatabaseOptions = {},
): PostgresDatabase<Tx> {
  // PostgreSQL cuts longer names, so that two schemas could become one.
  if (
    typeof schema !== "string" ||
    schema === "" ||
    Buffer.byteLength(schema) > 63 ||
    schema.includes("\0")
  ) {
    throw invalid("schema", "must be a name of 1 to 63 bytes");
  }
  const connections = withCommitHooks(given, { schema, notify });
  return {
    schema,
    notify,
    connections,
    classify,
    records: recordStore(connections, schema),
    unrecorded: unrecordedStore(connections, schema),
  };
}
