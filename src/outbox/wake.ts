import { createHash } from "node:crypto";

import type { Connections } from "../postgres/connections.ts";
import { statementOf } from "../postgres/statement.ts";

/** The channel that relays of a schema listen on: a schema's name may be longer than what fits behind a prefix. */
export function channelOf(schema: string): string {
  return `idemkit_outbox_${createHash("sha256").update(schema).digest("hex").slice(0, 16)}`;
}

/** Told that the shares of relays have changed, in the place of a bit mask of shards. */
export const sharesChanged = "shares";

/** What a notification says: shards to look at, or `undefined` for all. */
export function shardsOf(payload: string): number | undefined {
  return /^[0-9a-f]{1,4}$/.test(payload) ? Number.parseInt(payload, 16) : undefined;
}

/** The payload for a mask of shards. */
export function payloadOf(shards: number): string {
  return shards.toString(16);
}

/**
 * Pause between two notifications of a process. The first goes out at once, so a lone event is not delayed; under load
 * the relays are awake anyway, and NOTIFY serialises the commits of all that send one.
 */
const pauseMs = 10;

/** Wakes the relays, soon and never more often than they need. */
export type Waker = (shards: number) => void;

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
  let waiting = 0;
  let busy = false;

  async function send(): Promise<void> {
    const shards = waiting;
    waiting = 0;
    busy = true;
    // A notification that is lost costs the relay's poll interval and nothing else.
    await connections.query({ ...statement, values: [channel, payloadOf(shards)] }).catch(() => {});
    setTimeout(() => {
      busy = false;
      if (waiting !== 0) void send();
    }, pauseMs).unref();
  }

  return (shards) => {
    waiting |= shards;
    if (!busy && waiting !== 0) void send();
  };
}
