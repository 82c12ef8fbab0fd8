import type {
  EventMessage,
  OutgoingEvent,
  PostgresDatabase,
  Published,
  Publisher,
  Relay,
  RelayOptions,
} from "idemkit";
import { enqueue, runOnce, startRelay, valueOf } from "idemkit";
import { fromPg } from "idemkit/pg";
import type { SeenEvent } from "idemkit/testing";
import type pg from "pg";
import { afterAll, onTestFinished } from "vitest";

import { createDatabase } from "../../support/index.ts";
import type { TestDatabase } from "../../support/index.ts";

export type OrderDatabase = PostgresDatabase<pg.PoolClient>;

export interface Outbox {
  readonly test: TestDatabase;
  readonly pool: pg.Pool;
  readonly database: OrderDatabase;
  /** A client of the test's own, to step a transaction by hand. */
  client(): Promise<pg.PoolClient>;
}

let shared: Promise<TestDatabase> | undefined;
afterAll(async () => (await shared)?.drop());

/** The tests of a file share a database, each finds it empty: making one takes longer than most tests. */
const reset = `
  truncate idemkit.outbox_event, idemkit.outbox_held_event, idemkit.outbox_parked_key, idemkit.outbox_relay,
           idemkit.idempotency_record restart identity;
  update idemkit.outbox_shard set owner = null, epoch = 0, expires_at = null`;

const cutOff = `
  select pg_terminate_backend(pid) from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid() and state like 'idle in transaction%'`;

export async function createOutbox(options: { notify?: boolean } = {}): Promise<Outbox> {
  const test = await (shared ??= createDatabase());
  const pool = test.pool({ max: 20 });
  await pool.query(reset);
  onTestFinished(async () => {
    await pool.query(cutOff); // a failed test may have left transactions open, which the next one would wait for
    void pool.end();
  });
  const client = async (): Promise<pg.PoolClient> => {
    const own = await pool.connect();
    own.on("error", () => {});
    return own;
  };
  return { test, pool, database: fromPg(pool, options), client };
}

/** A relay that polls, and stops before the test's pool ends. */
export function relay(
  database: OrderDatabase,
  publisher: Publisher,
  options: Partial<RelayOptions> = {},
): Relay {
  const running = startRelay(database, { publisher, pollMs: 10, logger: silent, ...options });
  onTestFinished(() => running.stop());
  return running;
}

let keys = 0;

/** One transaction that sends these events. */
export async function send(
  database: OrderDatabase,
  ...events: readonly OutgoingEvent[]
): Promise<readonly string[]> {
  keys += 1;
  const command = { scope: "customer-1", operation: "order", key: `key-${keys}`, command: {} };
  return valueOf(
    await runOnce(database, command, async ({ tx }) => {
      const ids: string[] = [];
      for (const event of events) ids.push(await enqueue(tx, event));
      return ids;
    }),
  );
}

export function order(key: string, number = 1): OutgoingEvent {
  return { type: "order.created", key, payload: { number }, aggregateVersion: number };
}

export interface RecordingPublisher extends Publisher {
  /** Every message that was accepted, in order. */
  readonly accepted: EventMessage[];
  /** The sizes of all batches. */
  readonly batches: number[];
  /** What becomes of a message; by default it is accepted. */
  decide: (message: EventMessage) => Published | Promise<Published>;
}

export const acknowledged: Published = { published: "acknowledged" };

/** A broker in memory that keeps the port's contract: behind a message that is not accepted, none of its key is. */
export function recordingPublisher(): RecordingPublisher {
  const accepted: EventMessage[] = [];
  const batches: number[] = [];
  const publisher: RecordingPublisher = {
    accepted,
    batches,
    decide: () => acknowledged,
    publish: async (messages) => {
      batches.push(messages.length);
      const blocked = new Set<string>();
      const results: Published[] = [];
      for (const message of messages) {
        const result: Published = blocked.has(message.key)
          ? { published: "failed", error: new Error("behind one that was not accepted") }
          : await publisher.decide(message);
        if (result.published === "acknowledged") accepted.push(message);
        else blocked.add(message.key);
        results.push(result);
      }
      return results;
    },
    [Symbol.asyncDispose]: async () => {},
  };
  return publisher;
}

export function seen(messages: readonly EventMessage[]): SeenEvent[] {
  return messages.map(({ eventId, key }) => ({ eventId, key }));
}

/** Aggregate versions, the numbers that `order` gives. */
export function versions(messages: readonly EventMessage[]): (number | undefined)[] {
  return messages.map(({ aggregateVersion }) => aggregateVersion);
}

const silent = { info: (): void => {}, error: (): void => {} };

/** Whether a backend with this query waits for a lock. */
export async function waitsForLock(pool: pg.Pool, like: string): Promise<boolean> {
  const { rowCount } = await pool.query(
    `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like $1`,
    [`%${like}%`],
  );
  return (rowCount ?? 0) > 0;
}
