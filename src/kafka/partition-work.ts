import type { EventMessage } from "../core/event.ts";
import type { PartitionOffset, TopicPartition } from "./port.ts";

/** A record that is being worked on. */
export interface Entry {
  readonly offset: bigint;
  readonly key: string;
  /** Let go of once the record is done: one that waits for its place in the offsets is only a number. */
  event: EventMessage | undefined;
  /** Why the record is no event, where it is none. */
  readonly malformed: unknown;
  done: boolean;
}

/**
 * One partition for as long as this member owns it: what waits, what is in flight by key, and how far the done records
 * reach without a gap. A later ownership of the same partition is another one of these.
 */
export interface PartitionWork {
  readonly of: TopicPartition;
  /** Aborts when what is in flight is to be given up. */
  readonly signal: AbortSignal;
  /** Records that are not done, or behind one that isn't. */
  readonly uncommitted: number;
  readonly inFlight: number;
  /** Whether more of this partition is held back at the client. */
  paused: boolean;
  add(entries: readonly Entry[]): void;
  /** Takes up to `limit` records in order, without those whose key is in flight; the keys that are taken are so now. */
  take(limit: number): Entry[];
  /** The record has its final outcome in the database. */
  settle(entry: Entry): void;
  /** Puts records without an outcome back to where they were. */
  giveBack(entries: readonly Entry[]): void;
  /** The offset to commit, where it has moved. */
  toCommit(): PartitionOffset | undefined;
  committed(offset: bigint): void;
  /** Nothing more is started; what is in flight may end and be committed. */
  close(): void;
  /** Closed, and nothing more is committed. */
  revoke(): void;
  /** Gives up what is in flight. */
  abort(reason: unknown): void;
  /** Resolves when nothing is in flight. */
  idle(): Promise<void>;
}

/** A fresh ownership. */
export function partitionWork(of: TopicPartition): PartitionWork {
  const controller = new AbortController();
  const flights = inFlightByKey();
  const prefix = contiguousPrefix();
  let waiting: Entry[] = [];
  let closed = false;
  let revoked = false;
  let sent: bigint | undefined;

  function take(limit: number): Entry[] {
    const taken: Entry[] = [];
    const left: Entry[] = [];
    // A key in flight keeps all its records waiting, and so its order.
    for (const entry of waiting) (taken.length < limit && !flights.has(entry.key) ? taken : left).push(entry);
    waiting = left;
    flights.begin(taken);
    return taken;
  }

  function close(): void {
    closed = true;
    waiting = [];
  }

  return {
    of,
    signal: controller.signal,
    paused: false,
    get uncommitted() {
      return prefix.length();
    },
    get inFlight() {
      return flights.count();
    },
    add: (more) => {
      prefix.add(more);
      if (!closed) waiting.push(...more);
    },
    take,
    settle: (entry) => {
      if (entry.done) return;
      entry.done = true;
      entry.event = undefined;
      flights.end(entry);
    },
    giveBack: (given) => {
      if (!closed) waiting = [...given, ...waiting].sort((a, b) => (a.offset < b.offset ? -1 : 1));
      for (const entry of given) flights.end(entry);
    },
    toCommit: () => {
      const reached = prefix.reached();
      return revoked || reached === undefined || reached === sent ? undefined : { ...of, offset: reached };
    },
    committed: (offset) => void (sent = offset),
    close,
    revoke: () => {
      close();
      revoked = true;
    },
    abort: (reason) => controller.abort(reason),
    idle: flights.idle,
  };
}

interface InFlight {
  has(key: string): boolean;
  count(): number;
  begin(entries: readonly Entry[]): void;
  end(entry: Entry): void;
  idle(): Promise<void>;
}

function inFlightByKey(): InFlight {
  const keys = new Map<string, number>();
  let count = 0;
  let idleWaiters: (() => void)[] = [];

  function end({ key }: Entry): void {
    count -= 1;
    const left = (keys.get(key) ?? 1) - 1;
    if (left === 0) keys.delete(key);
    else keys.set(key, left);
    if (count > 0) return;
    for (const resolve of idleWaiters) resolve();
    idleWaiters = [];
  }

  return {
    has: (key) => keys.has(key),
    count: () => count,
    begin: (entries) => {
      for (const { key } of entries) keys.set(key, (keys.get(key) ?? 0) + 1);
      count += entries.length;
    },
    end,
    idle: () => (count === 0 ? Promise.resolve() : new Promise((resolve) => idleWaiters.push(resolve))),
  };
}

interface Prefix {
  add(entries: readonly Entry[]): void;
  length(): number;
  /** The offset behind the last record of those that are done without a gap; offsets themselves may have gaps. */
  reached(): bigint | undefined;
}

function contiguousPrefix(): Prefix {
  let entries: Entry[] = [];
  let head = 0;
  let reached: bigint | undefined;

  function advance(): void {
    for (let entry = entries[head]; entry?.done === true; entry = entries[head]) {
      reached = entry.offset + 1n;
      head += 1;
    }
    if (head < 1000) return;
    entries = entries.slice(head);
    head = 0;
  }

  return {
    add: (more) => void entries.push(...more),
    length: () => {
      advance();
      return entries.length - head;
    },
    reached: () => {
      advance();
      return reached;
    },
  };
}

/** The name of a partition, for maps and messages. */
export function nameOf({ topic, partition }: TopicPartition): string {
  return `${topic}/${partition}`;
}
