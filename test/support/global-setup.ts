import { randomUUID } from "node:crypto";

import pg from "pg";
import type { TestProject } from "vitest/node";

import { runSql, startTemporaryServer } from "./server.ts";
import { createTemplate } from "./template.ts";
import type { DatabaseSource } from "./template.ts";

declare module "vitest" {
  export interface ProvidedContext {
    databaseSource: DatabaseSource;
  }
}

interface Shared {
  users: number;
  server: Promise<{ source: DatabaseSource; close: () => Promise<void> }>;
}

/** The projects load this file each for itself; the one server they share is kept with the process. */
const kept = Symbol.for("idemkit.test.server");
const holder = globalThis as { [kept]?: Shared | undefined };

async function dropAll({ serverUrl, prefix }: DatabaseSource): Promise<void> {
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  const { rows } = await client.query("select datname from pg_database where starts_with(datname, $1)", [
    prefix,
  ]);
  await client.end();
  await runSql(serverUrl, ...rows.map(({ datname }) => `drop database if exists "${datname}" with (force)`));
}

async function open(): Promise<{ source: DatabaseSource; close: () => Promise<void> }> {
  const prefix = `idemkit_test_${randomUUID().slice(0, 8)}`;
  const given = process.env["DATABASE_URL"];
  const server = given ? undefined : await startTemporaryServer({});
  const source = { serverUrl: given ?? server?.connectionString ?? "", prefix };
  const close = (): Promise<void> => server?.remove() ?? dropAll(source);
  try {
    await createTemplate(source);
  } catch (error) {
    await close();
    throw error;
  }
  return { source, close };
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  holder[kept] ??= { users: 0, server: open() };
  const shared = holder[kept];
  shared.users += 1;
  const { source, close } = await shared.server;
  project.provide("databaseSource", source);
  return async () => {
    shared.users -= 1;
    if (shared.users > 0) return;
    holder[kept] = undefined;
    await close();
  };
}
