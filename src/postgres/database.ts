import { invalid } from "../internal/options.ts";
import type { Connections, PostgresDatabase } from "./connections.ts";
import { recordStore } from "./record-store.ts";
import { classify } from "./sqlstate.ts";
import { unrecordedStore } from "./unrecorded-store.ts";

/** A database on any client that implements the statement port. */
export function postgresDatabase<Tx>(connections: Connections<Tx>, schema = "idemkit"): PostgresDatabase<Tx> {
  // PostgreSQL cuts longer names, so that two schemas could become one.
  if (
    typeof schema !== "string" ||
    schema === "" ||
    Buffer.byteLength(schema) > 63 ||
    schema.includes("\0")
  ) {
    throw invalid("schema", "must be a name of 1 to 63 bytes");
  }
  return {
    schema,
    connections,
    classify,
    records: recordStore(connections, schema),
    unrecorded: unrecordedStore(connections, schema),
  };
}
