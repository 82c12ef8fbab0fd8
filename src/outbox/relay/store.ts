import type { PostgresDatabase } from "../../postgres/connections.ts";
import { statementOf } from "../../postgres/statement.ts";
import type { StatementName } from "../../postgres/statement.ts";
import { idArray, queuedEvent } from "./batch.ts";
import type { QueuedEvent } from "./batch.ts";

/** What proves that a shard is ours: it is compared, and locked, by every statement that changes its events. */
export interface Fence {
  readonly shard: number;
  readonly owner: string;
  readonly epoch: string;
}

/** What is wanted of a park. */
export interface Refusal {
  readonly refused: QueuedEvent;
  /** The events of the key in the same batch, the refused one first. */
  readonly events: readonly QueuedEvent[];
  readonly reason: string;
}

/** The statements of a relay on its shards' events; `undefined` is answered where the shard is no longer ours. */
export interface OutboxStore {
  pending(shards: readonly number[]): Promise<readonly number[]>;
  read(shard: number, rows: number): Promise<readonly QueuedEvent[]>;
  settle(fence: Fence, events: readonly QueuedEvent[]): Promise<number | undefined>;
  hold(fence: Fence, events: readonly QueuedEvent[]): Promise<number | undefined>;
  /** `parkedAt` is missing where the key was parked already, or the event is gone. */
  park(
    fence: Fence,
    refusal: Refusal,
  ): Promise<{ readonly held: number; readonly parkedAt?: Date } | undefined>;
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
    park: async (fence, { refused, events, reason }) => {
      const { topic, key, eventId } = refused.message;
      const values = [...fenced(fence, events), topic, key, eventId, reason];
      const { rows } = await connections.query({ text: texts.park, values });
      if (rows[0]?.["owned"] !== true) return undefined;
      const parkedAtMs = rows[0]["parked_at_ms"] as number | null;
      const held = rows[0]["held"] as number;
      return parkedAtMs === null ? { held } : { held, parkedAt: new Date(parkedAtMs) };
    },
  };
}

function fenced({ shard, owner, epoch }: Fence, events: readonly QueuedEvent[]): readonly unknown[] {
  return [shard, owner, epoch, idArray(events)];
}
