import type { EmbeddedPostgres } from "../../scripts/embedded-postgres.mjs";
import { createDatabaseFrom } from "./database.ts";
import type { TestDatabase } from "./database.ts";
import { startTemporaryServer } from "./server.ts";
import { createTemplate, templateOf } from "./template.ts";
import type { DatabaseSource } from "./template.ts";

export interface TestCluster extends EmbeddedPostgres {
  /** A fresh database on this cluster, idemkit migrated into it. */
  createDatabase(): Promise<TestDatabase>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * A PostgreSQL of the test's own, to stop, kill and start again. Ends with `remove()`.
 * `durable: true` keeps fsync on.
 */
export async function startCluster(
  options: { settings?: Record<string, string | number | boolean>; durable?: boolean } = {},
): Promise<TestCluster> {
  const server = await startTemporaryServer(options);
  const source: DatabaseSource = { serverUrl: server.connectionString, prefix: "idemkit_test" };
  let template: Promise<void> | undefined;
  // Added to the object and not copied from it: its pid is another one after each start.
  return Object.assign(server, {
    createDatabase: async (): Promise<TestDatabase> => {
      await (template ??= createTemplate(source));
      return createDatabaseFrom(source, templateOf(source));
    },
    [Symbol.asyncDispose]: () => server.remove(),
  });
}
