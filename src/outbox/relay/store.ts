import type { PostgresDatabase } from "../../postgres/connections.ts";
import { statementOf } from "../../postgres/statement.ts";
import type { StatementName } from "../../postgres/statement.ts";
import { idArray, queuedEvent } from "./batch.ts";
import type { QueuedEvent } from "./batch.ts";
import type { ParkedKey } from "./parked-key.ts";

/** What proves that a shard is ours: it is compared, and locked, by every statement that changes its events. */
export interface Fence {
  readonly shard: number;
  readonly owner: string;
  readonly epoch: string;
}

/** A key to park. */
export interface Refusal {
  readonly refused: QueuedEvent;
  /** The events of the key in the same batch that were not accepted, the refused one first. */
  readonly events: readonly QueuedEvent[];
  readonly reason: string;
}

/** The statements of a relay on its shards' events; `undefined` is answered where the shard is no longer ours. */
export interface OutboxStore {
  pending(shards: readonly number[]): Promise<readonly number[]>;
  read(shard: number, rows: number): Promise<readonly QueuedEvent[]>;
  settle(fence: Fence, events: readonly QueuedEvent[]): Promise<number | undefined>;
  hold(fence: Fence, events: readonly QueuedEvent[]): Promise<number | undefined>;
  /** Answers the keys that are parked now and were not before. */
  park(fence: Fence, refusals: readonly Refusal[]): Promise<readonly ParkedKey[] | undefined>;
}

/** Bounds what a batch holds in memory, whatever its rows; the first event comes whatever its size. */
const maxBatchBytes = 8_000_000;

/**
 * The store of one database. Its statements are sent unprepared: a generic plan made while the table was empty reads the
 * whole of a backlog, and planning a statement costs nothing beside a batch.
 */
export function outboxStore<Tx>({ connections, schema }: PostgresDatabase<Tx>): OutboxStore {
  const textOf = (name: StatementName): string => statementOf(name, schema).text;
  const texts = {
    pending: textOf("outbox-pending"),
    read: textOf("outbox-read"),
    settle: textOf("outbox-settle"),
    hold: textOf("outbox-hold"),
    park: textOf("outbox-park"),
  };

  return {
    pending: async (shards) => {
      const { rows } = await connections.query({ text: texts.pending, values: [[...shards]] });
      return rows.map((row) => row["shard"] as number);
    },
    read: async (shard, limit) => {
      const { rows } = await connections.query({ text: texts.read, values: [shard, limit, maxBatchBytes] });
      return rows.map(queuedEvent);
    },
    settle: async (fence, events) => {
      const { rows } = await connections.query({ text: texts.settle, values: fenced(fence, events) });
      return rows[0]?.["owned"] === true ? (rows[0]["settled"] as number) : undefined;
    },
    hold: async (fence, events) => {
      const { rows } = await connections.query({ text: texts.hold, values: fenced(fence, events) });
      return rows[0]?.["owned"] === true ? (rows[0]["held"] as number) : undefined;
    },
    park: async (fence, refusals) => {
      const events = refusals.flatMap((refusal) => refusal.events);
      const column = (pick: (refusal: Refusal) => string): string[] => refusals.map(pick);
      const values = [
        ...fenced(fence, events),
        column(({ refused }) => refused.message.topic),
        column(({ refused }) => refused.message.key),
        column(({ refused }) => refused.message.eventId),
        column(({ reason }) => reason),
      ];
      const { rows } = await connections.query({ text: texts.park, values });
      if (rows[0]?.["owned"] !== true) return undefined;
      const parked = new Set(rows[0]["parked"] as readonly string[]);
      const parkedAt = new Date(Number(rows[0]["parked_at_ms"]));
      return refusals
        .filter(({ refused }) => parked.has(refused.message.eventId))
        .map((refusal) => parkedKey(refusal, parkedAt));
    },
  };
}

function fenced({ shard, owner, epoch }: Fence, events: readonly QueuedEvent[]): readonly unknown[] {
  return [shard, owner, epoch, idArray(events)];
}

function parkedKey({ refused, events, reason }: Refusal, parkedAt: Date): ParkedKey {
  const { topic, key, eventId } = refused.message;
  return { topic, key, eventId, reason, parkedAt, held: events.length };
}
