import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";

import type pg from "pg";
import { inject } from "vitest";

import { createPool } from "./pool.ts";
import { databaseUrl, runSql } from "./server.ts";
import { templateOf } from "./template.ts";
import type { DatabaseSource } from "./template.ts";
import { until } from "./until.ts";

export interface TestDatabase {
  readonly connectionString: string;
  /** Pools made here are ended by `drop`; the options are those of pg. */
  pool(options?: pg.PoolConfig): pg.Pool;
  /** Ends the pools and drops the database, whoever is still connected. */
  drop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Another copy being made can hold the template for a moment. */
const objectInUse = "55006";

async function copyTemplate(source: DatabaseSource, name: string, template: string): Promise<void> {
  await until(
    async () => {
      try {
        await runSql(source.serverUrl, `create database "${name}" template "${template}"`);
        return true;
      } catch (error) {
        if ((error as { code?: unknown }).code === objectInUse) return false;
        throw error;
      }
    },
    { timeoutMs: 30_000, what: `a copy of ${template}` },
  );
}

/** Ends a pool that the test may have ended already. */
async function endPool(pool: pg.Pool): Promise<void> {
  if (!pool.ended) await pool.end();
}

export async function createDatabaseFrom(source: DatabaseSource, template: string): Promise<TestDatabase> {
  const name = `${source.prefix}_${randomUUID().slice(0, 8)}`;
  await copyTemplate(source, name, template);
  const connectionString = databaseUrl(source.serverUrl, name);
  const pools: pg.Pool[] = [];
  const drop = async (): Promise<void> => {
    await runSql(source.serverUrl, `drop database if exists "${name}" with (force)`);
    // A pool whose client a test forgot to give back never ends: its connections are cut off all the same.
    await Promise.race([Promise.all(pools.map(endPool)), delay(200)]);
  };
  return {
    connectionString,
    pool(options = {}) {
      const pool = createPool(connectionString, options);
      pools.push(pool);
      return pool;
    },
    drop,
    [Symbol.asyncDispose]: drop,
  };
}

/**
 * A fresh database on the run's server, idemkit migrated into it.
 * `{ empty: true }` leaves idemkit out, for tests of the migrations.
 */
export function createDatabase(options: { empty?: boolean } = {}): Promise<TestDatabase> {
  const source = inject("databaseSource");
  return createDatabaseFrom(source, options.empty ? "template0" : templateOf(source));
}
