import type { CrashPoint } from "idemkit/testing";
import { withCrashPoints } from "idemkit/testing";
import type pg from "pg";

import { until } from "../../../support/index.ts";
import type { Database } from "./payments.ts";

/** A promise that a test resolves when it wants to. */
export interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

export function gate(): Gate {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

/** A database that stops once at each of these points until the test says `go`. */
export interface Stepwise {
  readonly database: Database;
  reached(point: CrashPoint): Promise<void>;
  go(point: CrashPoint): void;
}

export function stepwise(database: Database, ...points: readonly CrashPoint[]): Stepwise {
  const stops = new Map(points.map((point) => [point, { came: gate(), may: gate() }]));
  const at = (point: CrashPoint): { came: Gate; may: Gate } => {
    const stop = stops.get(point);
    if (stop === undefined) throw new Error(`this database does not stop at ${point}`);
    return stop;
  };
  return {
    database: withCrashPoints(database, (point) => {
      const stop = stops.get(point);
      stop?.came.open();
      return stop?.may.opened;
    }),
    reached: (point) => at(point).came.opened,
    go: (point) => at(point).may.open(),
  };
}

/** Waits until some backend of this database waits for a lock with this statement. */
export async function waitsForLock(admin: pg.Pool, statement: string): Promise<number> {
  return until(
    async () => {
      const { rows } = await admin.query<{ pid: number }>(
        `select pid from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock' and query ilike $1`,
        [`%${statement}%`],
      );
      return rows[0]?.pid;
    },
    { what: `a backend that waits for a lock in ${statement}` },
  );
}

/**
 * Makes sessions with this `search_path` find `pg_try_advisory_xact_lock` in a schema of the test's first: idemkit's own
 * statement, stopped between its snapshot and its lock (`gated`), or with a lock that keeps nobody out (`useless`).
 */
export async function installLocks(admin: pg.Pool): Promise<void> {
  await admin.query(`
    create schema gated;
    create function gated.pg_try_advisory_xact_lock(key bigint) returns boolean language plpgsql as $$
      begin
        perform pg_advisory_xact_lock_shared(4711);
        return pg_catalog.pg_try_advisory_xact_lock(key);
      end $$;
    create schema useless;
    create function useless.pg_try_advisory_xact_lock(key bigint) returns boolean language sql as 'select true';
  `);
}

export const gatedLock = { options: "-c search_path=gated,pg_catalog,public" };
export const uselessLock = { options: "-c search_path=useless,pg_catalog,public" };
