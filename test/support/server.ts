import { randomUUID } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";

import pg from "pg";

import { startPostgres } from "../../scripts/embedded-postgres.mjs";
import type { EmbeddedPostgres } from "../../scripts/embedded-postgres.mjs";

/** Enough for tests that open many pools at once. */
const settings = { max_connections: 300, max_prepared_transactions: 0, log_min_messages: "warning" };

/**
 * A cluster of the test's own, whose data is gone afterwards, however the process ends. Processes of it may be
 * killed, the machine is not: so it runs without fsync unless asked.
 */
export function startTemporaryServer(options: {
  settings?: Record<string, string | number | boolean>;
  durable?: boolean;
}): Promise<EmbeddedPostgres> {
  return startPostgres({
    dataDir: join(tmpdir(), `idemkit-test-${randomUUID()}`),
    settings: { ...settings, ...options.settings },
    durable: options.durable ?? false,
    temporary: true,
  });
}

export function databaseUrl(serverUrl: string, database: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${database}`;
  return url.href;
}

/** Runs the statements on a connection of its own. */
export async function runSql(connectionString: string, ...statements: string[]): Promise<void> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}
