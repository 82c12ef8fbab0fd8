import { invalid } from "../internal/options.ts";
import type { Connections, PostgresDatabase } from "./connections.ts";
import { recordStore } from "./record-store.ts";
import { classify } from "./sqlstate.ts";

/** A database on any client that implements the statement port. */
export function postgresDatabase<Tx>(connections: Connections<Tx>, schema = "idemkit"): PostgresDatabase<Tx> {
  if (typeof schema !== "string" || schema === "" || schema.length > 63 || schema.includes("\0")) {
    throw invalid("schema", "must be a name of 1 to 63 characters");
  }
  return { schema, connections, classify, records: recordStore(connections, schema) };
}
