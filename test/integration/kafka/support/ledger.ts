import { consume } from "idemkit/kafka";
import type {
  Consumer,
  ConsumeObserver,
  ConsumeOptions,
  KafkaClient,
  PartitionOffset,
  TopicPartition,
} from "idemkit/kafka";
import type { EventHandler, EventOutcome } from "idemkit";
import { fromPg } from "idemkit/pg";
import type pg from "pg";

import { createDatabase, until } from "../../../support/index.ts";
import type { TestDatabase } from "../../../support/index.ts";
import { groupName } from "../../../support/kafka.ts";

/** One line that a handler wrote. */
export interface Effect {
  readonly consumer: string;
  readonly eventId: string;
  readonly key: string;
  readonly n: number;
}

export type LedgerHandler = EventHandler<pg.PoolClient>;

export interface LedgerOptions extends Partial<ConsumeOptions<pg.PoolClient>> {
  readonly client: KafkaClient;
  readonly topics: readonly string[];
  /** Runs before the line is written. */
  readonly before?: LedgerHandler;
}

/** A consumer whose handler writes one line for each event, and what it told. */
export interface LedgerConsumer extends Consumer {
  readonly outcomes: EventOutcome[];
  readonly assigned: TopicPartition[];
  readonly committed: PartitionOffset[];
  readonly revocations: { readonly partitions: readonly TopicPartition[]; readonly lost: boolean }[];
  readonly pauses: unknown[];
  resumes: number;
}

export interface Ledger extends AsyncDisposable {
  readonly database: TestDatabase;
  readonly pool: pg.Pool;
  /** In the order in which they were committed within a key. */
  effects(consumer?: string): Promise<Effect[]>;
  /** Waits for this many effects. */
  reached(count: number, options?: { consumer?: string; timeoutMs?: number }): Promise<Effect[]>;
  consume(options: LedgerOptions): LedgerConsumer;
}

const quiet = { info: (): void => {}, error: (): void => {} };

export async function createLedger(): Promise<Ledger> {
  const database = await createDatabase();
  const pool = database.pool({ max: 12, connectionTimeoutMillis: 2000 });
  await pool.query(
    `create table effect (seq bigint generated always as identity primary key, consumer text not null,
      event_id uuid not null, key text not null, n int not null)`,
  );
  const consumers: Consumer[] = [];
  const effects = async (consumer = "ledger"): Promise<Effect[]> => {
    const { rows } = await pool.query<Effect>(
      `select consumer, event_id as "eventId", key, n from effect where consumer = $1 order by seq`,
      [consumer],
    );
    return rows;
  };
  return {
    database,
    pool,
    effects,
    reached: (count, { consumer = "ledger", timeoutMs = 20_000 } = {}) =>
      until(
        async () => {
          const found = await effects(consumer);
          return found.length >= count ? found : undefined;
        },
        { timeoutMs, pollMs: 50, what: `${count} effects` },
      ),
    consume: ({ before, ...options }) => {
      const consumer = options.consumer ?? "ledger";
      // Soon aware of a rebalance.
      const groupId = groupName(consumer, options.topics[0] ?? "");
      const quick = { groupId, logger: quiet, maxWaitMs: 100, heartbeatMs: 300, sessionTimeoutMs: 10_000 };
      const started = startConsumer({ database: fromPg(pool), consumer, ...quick, ...options }, before);
      consumers.push(started);
      return started;
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(consumers.map((each) => each.stop()));
      await database.drop();
    },
  };
}

function startConsumer(options: ConsumeOptions<pg.PoolClient>, before?: LedgerHandler): LedgerConsumer {
  const outcomes: EventOutcome[] = [];
  const assigned: TopicPartition[] = [];
  const committed: PartitionOffset[] = [];
  const revocations: { partitions: readonly TopicPartition[]; lost: boolean }[] = [];
  const pauses: unknown[] = [];
  const observe: ConsumeObserver = {
    outcome: (outcome) => outcomes.push(outcome),
    assigned: (partitions) => assigned.push(...partitions),
    revoked: (partitions, lost) => revocations.push({ partitions, lost }),
    committed: (offsets) => committed.push(...offsets),
    paused: (error) => pauses.push(error),
    resumed: () => (told.resumes += 1),
  };
  const write: LedgerHandler = async (event, context) => {
    await before?.(event, context);
    const { n } = event.data as { n: number };
    await context.tx.query("insert into effect (consumer, event_id, key, n) values ($1, $2, $3, $4)", [
      options.consumer,
      event.eventId,
      event.key,
      n,
    ]);
  };
  const running = consume({ ...options, observe }, { "payment.charged": write });
  const told = Object.assign(running, { outcomes, assigned, committed, revocations, pauses, resumes: 0 });
  return told;
}

/** The numbers of each key, in the order of their effects. */
export function numbersByKey(effects: readonly Effect[]): Record<string, number[]> {
  const byKey: Record<string, number[]> = {};
  for (const { key, n } of effects) (byKey[key] ??= []).push(n);
  return byKey;
}

/** Throws where a key's effects are out of order. */
export function inversions(effects: readonly Effect[]): string[] {
  return Object.entries(numbersByKey(effects)).flatMap(([key, numbers]) =>
    numbers.some((n, at) => at > 0 && n <= (numbers[at - 1] ?? 0)) ? [`${key}: ${numbers.join(",")}`] : [],
  );
}
