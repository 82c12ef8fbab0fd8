import { IdemkitError } from "../errors.ts";
import type { Call } from "../postgres/connections.ts";
import { statementOf } from "../postgres/statement.ts";
import type { Statement } from "../postgres/statement.ts";
import type { CheckedEvent } from "./outgoing.ts";
import { placeOf } from "./shard.ts";
import type { Place } from "./shard.ts";

/** More locks of one transaction could exhaust the server's lock table: 30,000 did. */
const maxKeys = 1000;

/** The events of one transaction, until they are inserted together. */
export interface Pending {
  readonly size: number;
  /** The shards that get something. */
  shards(): ReadonlySet<number>;
  /** @throws IdemkitError `outbox_too_many_keys`, and then none of them was added. */
  add(events: readonly CheckedEvent[]): void;
  /** Forgets all but the first events. */
  truncate(size: number): void;
  /** The one statement that locks the keys in order and inserts. */
  insert(): Call;
}

/** An empty one. */
export function pendingEvents(schema: string): Pending {
  const events: (CheckedEvent & Place)[] = [];
  const locks = new Set<bigint>();
  const column = <T>(pick: (event: CheckedEvent & Place) => T): T[] => events.map(pick);

  return {
    get size() {
      return events.length;
    },
    shards: () => new Set(column(({ shard }) => shard)),
    add: (added) => {
      const placed = added.map((event) => ({ ...event, ...placeOf(schema, event.topic, event.key) }));
      const fresh = new Set(placed.map(({ lock }) => lock).filter((lock) => !locks.has(lock)));
      if (locks.size + fresh.size > maxKeys) throw new IdemkitError("outbox_too_many_keys");
      for (const lock of fresh) locks.add(lock);
      for (const event of placed) events.push(event);
    },
    truncate: (size) => {
      events.length = Math.min(size, events.length);
      locks.clear();
      for (const { lock } of events) locks.add(lock);
    },
    insert: () => ({
      ...insertStatement(schema),
      values: [
        Array.from(locks, String),
        column(({ shard }) => shard),
        column(({ eventId }) => eventId),
        column(({ topic }) => topic),
        column(({ key }) => key),
        column(({ type }) => type),
        column(({ payload }) => asBuffer(payload)),
        column(({ headers }) => headers),
        column(({ aggregateVersion }) => aggregateVersion),
        column(({ sagaId }) => sagaId),
        column(({ stepName }) => stepName),
      ],
    }),
  };
}

const statementsBySchema = new Map<string, Statement>();

function insertStatement(schema: string): Statement {
  const found = statementsBySchema.get(schema);
  const statement = found ?? statementOf("outbox-enqueue", schema);
  if (found === undefined) statementsBySchema.set(schema, statement);
  return statement;
}

/** Inside an array drivers know Node's own bytes only. */
function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
