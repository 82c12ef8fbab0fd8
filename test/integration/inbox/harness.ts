import { createInbox } from "idemkit";
import type { EventHandlers, EventMessage, Inbox, InboxSettings } from "idemkit";
import { fromPg } from "idemkit/pg";
import type pg from "pg";
import { v7 } from "uuid";

import { createDatabase } from "../../support/index.ts";
import type { TestDatabase } from "../../support/index.ts";

export type Handlers = EventHandlers<pg.PoolClient>;

/** A database with a table of effects, and inboxes on it. */
export interface Bench {
  readonly database: TestDatabase;
  readonly pool: pg.Pool;
  /** No pauses between tries, unless asked. */
  inbox(handlers: Handlers, settings?: Partial<InboxSettings>, pool?: pg.Pool): Inbox;
  /** The effects so far, in the order in which they were written. */
  effects(consumer?: string): Promise<string[]>;
  rows(sql: string, values?: unknown[]): Promise<Record<string, unknown>[]>;
}

export async function openBench(): Promise<Bench> {
  const database = await createDatabase();
  const pool = database.pool({ max: 10 });
  await pool.query("create table effect (n bigint generated always as identity, consumer text, event text)");
  const rows = async (sql: string, values: unknown[] = []): Promise<Record<string, unknown>[]> =>
    (await pool.query<Record<string, unknown>>(sql, values)).rows;
  return {
    database,
    pool,
    rows,
    inbox: (handlers, settings = {}, own = pool) =>
      createInbox(
        { database: fromPg(own), consumer: "ledger", retry: { baseMs: 0, maxMs: 0 }, ...settings },
        handlers,
      ),
    effects: async (consumer = "ledger") => {
      const found = await rows("select event from effect where consumer = $1 order by n", [consumer]);
      return found.map((row) => String(row["event"]));
    },
  };
}

/** The effect of an event: exactly one row for each, if the inbox does its work. */
export async function writeEffect(tx: pg.PoolClient, name: string, consumer = "ledger"): Promise<void> {
  await tx.query("insert into effect (consumer, event) values ($1, $2)", [consumer, name]);
}

export interface EventOptions {
  readonly id?: string;
  readonly type?: string;
  readonly topic?: string;
  readonly key?: string;
  readonly version?: number;
  readonly data?: unknown;
}

/** An event named by its data. */
export function event(name: string, options: EventOptions = {}): EventMessage {
  const { id = v7(), type = "payment.charged", topic = "payment", key = "order-1", version } = options;
  return {
    eventId: id,
    type,
    topic,
    key,
    payload: Buffer.from(JSON.stringify(options.data ?? { name })),
    headers: {},
    ...(version === undefined ? {} : { aggregateVersion: version }),
  };
}

export function nameOf(data: unknown): string {
  return (data as { name: string }).name;
}

/** Writes an effect named as the event. */
export const record: Handlers = {
  "payment.charged": async ({ data }, { tx }) => writeEffect(tx, nameOf(data)),
};
