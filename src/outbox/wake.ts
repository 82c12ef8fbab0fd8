import { createHash } from "node:crypto";

import type { Connections } from "../postgres/connections.ts";
import { statementOf } from "../postgres/statement.ts";

/** The channel that relays of a schema listen on: a schema's name may be longer than what fits behind a prefix. */
export function channelOf(schema: string): string {
  return `idemkit_outbox_${createHash("sha256").update(schema).digest("hex").slice(0, 16)}`;
}

/** Told in the place of shards: the shares of the relays have changed. */
export const sharesChanged = "shares";

/** What a notification says: the shards that have something new, such as `3,11`. */
export function payloadOf(shards: Iterable<number>): string {
  return [...shards].join(",");
}

/** The shards that a notification names; whatever another version may say names none. */
export function shardsOf(payload: string): readonly number[] {
  return payload.split(",").map(Number).filter(Number.isInteger);
}

/**
 * Pause between two notifications of a process. The first goes out at once, so a lone event is not delayed; under load
 * the relays are awake anyway, and NOTIFY serialises the commits of all that send one.
 */
const pauseMs = 10;

/** Wakes the relays, soon and never more often than they need. */
export type Waker = (shards: Iterable<number>) => void;

const wakers = new WeakMap<object, Waker>();

/** The waker that all transactions of these connections share. */
export function wakerOf(connections: Pick<Connections<unknown>, "query">, schema: string): Waker {
  const found = wakers.get(connections);
  const waker = found ?? newWaker(connections, schema);
  if (found === undefined) wakers.set(connections, waker);
  return waker;
}

function newWaker(connections: Pick<Connections<unknown>, "query">, schema: string): Waker {
  const statement = statementOf("outbox-wake", schema);
  const channel = channelOf(schema);
  const waiting = new Set<number>();
  let busy = false;

  async function send(): Promise<void> {
    const payload = payloadOf(waiting);
    waiting.clear();
    busy = true;
    // A notification that is lost costs the relay's poll interval and nothing else.
    await connections.query({ ...statement, values: [channel, payload] }).catch(() => {});
    setTimeout(() => {
      busy = false;
      if (waiting.size > 0) void send();
    }, pauseMs).unref();
  }

  return (shards) => {
    for (const shard of shards) waiting.add(shard);
    if (!busy && waiting.size > 0) void send();
  };
}
