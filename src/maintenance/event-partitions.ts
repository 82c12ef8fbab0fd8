import { createHash } from "node:crypto";

import { backoffMs, systemRuntime } from "../internal/runtime.ts";
import type { PostgresDatabase, Result, Session } from "../postgres/connections.ts";
import { sqlstateOf } from "../postgres/sqlstate.ts";
import { statementOf, withSchema } from "../postgres/statement.ts";
import type { EventDay } from "./event-day.ts";

/** Deliveries queue behind a lock that waits, so it waits for a moment only, and comes back later. */
const lockTimeoutMs = 100;
const maxTries = 5;
const backoff = { baseMs: 50, maxMs: 500 };
const lockNotAvailable = "55P03";
const deadlockDetected = "40P01";

/**
 * Rows of a day that may be moved out of the default partition when the day gets its own: they are moved under a lock
 * that keeps deliveries to the default partition waiting. A day with more stays there, and is swept row by row.
 */
const maxMovedRows = 50_000;

/**
 * What became of a change to the partitions. `busy`: open transactions or another cleaner were in the way, try later;
 * `crowded`: see {@link maxMovedRows}; `needless`: another cleaner had done it.
 */
export type Changed = "done" | "busy" | "crowded" | "needless";

/** Makes the partition of a day; rows of the day that are in the default partition move to it in the same transaction. */
export function makeDay<Tx>(
  database: PostgresDatabase<Tx>,
  day: EventDay,
  signal?: AbortSignal,
): Promise<Changed> {
  const bounds = `event_id >= '${day.from}' and event_id < '${day.to}'`;
  return change(database, signal, async ({ run, exists }) => {
    if (await exists(day)) return "needless";
    await run(`create table :"schema".${day.name} (like :"schema".processed_event including all)`);
    await run(`lock table only :"schema".processed_event_default in access exclusive mode`);
    const { rows } = await run(`select count(*)::int as n from
      (select from :"schema".processed_event_default where ${bounds} limit ${maxMovedRows + 1}) as x`);
    if (Number(rows[0]?.["n"]) > maxMovedRows) return "crowded";
    await run(`with moved as (delete from :"schema".processed_event_default where ${bounds} returning *)
      insert into :"schema".${day.name} select * from moved`);
    await run(`alter table :"schema".processed_event
      attach partition :"schema".${day.name} for values from ('${day.from}') to ('${day.to}')`);
    return "done";
  });
}

/**
 * Forgets the records of a day. Whatever comes of it later is late by the horizon that is written here; what a consumer
 * records of it all the same is not truncated a second time.
 */
export function expireDay<Tx>(
  database: PostgresDatabase<Tx>,
  day: EventDay,
  signal?: AbortSignal,
): Promise<Changed> {
  const horizon = statementOf("processed-event-horizon", database.schema);
  return change(database, signal, async ({ run, session }) => {
    const { count } = await session.run({ ...horizon, values: [day.endMs] });
    if (count === 0) return "needless";
    await run(`truncate :"schema".${day.name}`);
    return "done";
  });
}

/** Drops an expired day. Late ids that were processed into it since are kept: they move to the default partition. */
export function dropDay<Tx>(
  database: PostgresDatabase<Tx>,
  day: EventDay,
  signal?: AbortSignal,
): Promise<Changed> {
  return change(database, signal, async ({ run, exists }) => {
    if (!(await exists(day))) return "needless";
    await run(`alter table :"schema".processed_event detach partition :"schema".${day.name}`);
    await run(
      `insert into :"schema".processed_event select * from :"schema".${day.name} on conflict do nothing`,
    );
    await run(`drop table :"schema".${day.name}`);
    return "done";
  });
}

/** The one cleaner's transaction. */
interface Cleaning {
  readonly session: Session<unknown>;
  run(sql: string): Promise<Result>;
  exists(day: EventDay): Promise<boolean>;
}

async function change<Tx>(
  database: PostgresDatabase<Tx>,
  signal: AbortSignal | undefined,
  work: (cleaning: Cleaning) => Promise<Changed>,
): Promise<Changed> {
  for (let tries = 0; tries < maxTries; tries += 1) {
    if (signal?.aborted === true) break;
    if (tries > 0) await systemRuntime.sleep(backoffMs(tries, backoff, systemRuntime.random), signal);
    const changed = await changeOnce(database, work);
    if (changed !== "busy") return changed;
  }
  return "busy";
}

async function changeOnce<Tx>(
  { connections, schema }: PostgresDatabase<Tx>,
  work: (cleaning: Cleaning) => Promise<Changed>,
): Promise<Changed> {
  const values = [cleanerLock(schema), String(lockTimeoutMs)];
  const { session, first } = await connections.begin({
    ...statementOf("processed-event-clean", schema),
    values,
  });
  try {
    const free = first.rows[0]?.["locked"] === true;
    const changed = free ? await work(cleaningOn(session, schema)) : "busy";
    await (changed === "done" ? session.commit() : session.rollback());
    return changed;
  } catch (error) {
    await session.rollback();
    const sqlstate = sqlstateOf(error);
    if (sqlstate === lockNotAvailable || sqlstate === deadlockDetected) return "busy";
    throw error;
  }
}

function cleaningOn(session: Session<unknown>, schema: string): Cleaning {
  const run = (sql: string): Promise<Result> => session.run({ text: withSchema(sql, schema) });
  return {
    session,
    run,
    exists: async ({ name }) => {
      const found = {
        text: "select from pg_catalog.pg_tables where schemaname = $1 and tablename = $2",
        values: [schema, name],
      };
      return (await session.run(found)).rows.length > 0;
    },
  };
}

function cleanerLock(schema: string): string {
  return createHash("sha256")
    .update(`idemkit.processed-event\0${schema}`)
    .digest()
    .readBigInt64BE(0)
    .toString();
}
