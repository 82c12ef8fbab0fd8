import type { Published } from "../../core/event.ts";
import { IdemkitError } from "../../errors.ts";
import { orderKey } from "./batch.ts";
import type { QueuedEvent } from "./batch.ts";
import type { Lease } from "./lease-table.ts";
import type { RelaySettings } from "./options.ts";
import { reasonOf } from "./parked-key.ts";
import type { ParkedKey } from "./parked-key.ts";
import type { OutboxStore, Refusal } from "./store.ts";

/** What a turn came to. */
export interface TurnResult {
  readonly read: number;
  readonly published: number;
  readonly parked: readonly ParkedKey[];
  readonly publishMs: number;
  /** Why the rest has to be sent again, where something has. */
  readonly failure?: { readonly error: unknown };
  /** The shard is somebody else's now. */
  readonly lost: boolean;
}

const nothing: TurnResult = { read: 0, published: 0, parked: [], publishMs: 0, lost: false };

/**
 * One batch of a shard: read from its lowest id, publish outside any transaction, delete what was acknowledged, park what
 * was refused. What failed stays where it is and is read again.
 */
export async function takeTurn(
  store: OutboxStore,
  { publisher, runtime }: Pick<RelaySettings, "publisher" | "runtime">,
  lease: Lease,
  limit: number,
): Promise<TurnResult> {
  const events = await store.read(lease.shard, limit);
  const followers = events.filter(({ parked }) => parked);
  const ready = events.filter(({ parked }) => !parked);
  const held = followers.length === 0 ? 0 : await store.hold(lease, followers);
  if (held === undefined) return { ...nothing, lost: true };
  if (ready.length === 0) return { ...nothing, read: events.length };
  // A heartbeat is late: whoever took the shard may be publishing these now.
  if (!lease.isValid()) return { ...nothing, failure: { error: new Error("the lease was not renewed") } };

  const startedMs = runtime.monotonicMs();
  const results = await published(publisher, ready, lease.signal);
  const publishMs = runtime.monotonicMs() - startedMs;
  const settled = await settle(store, lease, ready, results);
  return { read: events.length, publishMs, ...settled };
}

/** The publisher's answers; where it breaks its contract, nothing counts as sent. */
async function published(
  publisher: RelaySettings["publisher"],
  events: readonly QueuedEvent[],
  signal: AbortSignal,
): Promise<readonly Published[]> {
  const failed = (error: unknown): readonly Published[] => events.map(() => ({ published: "failed", error }));
  try {
    const results = await publisher.publish(
      events.map(({ message }) => message),
      signal,
    );
    if (results.length === events.length) return results;
    return failed(
      new IdemkitError("relay_publisher_invalid", { detail: `${results.length} for ${events.length}` }),
    );
  } catch (error) {
    return failed(error);
  }
}

type Settled = Pick<TurnResult, "published" | "parked" | "failure" | "lost">;

async function settle(
  store: OutboxStore,
  lease: Lease,
  events: readonly QueuedEvent[],
  results: readonly Published[],
): Promise<Settled> {
  const acknowledged = events.filter((_, i) => results[i]?.published === "acknowledged");
  const count = acknowledged.length === 0 ? 0 : await store.settle(lease, acknowledged);
  if (count === undefined) return { published: 0, parked: [], lost: true };

  const refusals = refusalsOf(events, results);
  const parked = refusals.size === 0 ? [] : await store.park(lease, [...refusals.values()]);
  if (parked === undefined) return { published: count, parked: [], lost: true };
  const failed = results.find(
    (result, i) => result.published === "failed" && !refusals.has(keyAt(events, i)),
  );
  const failure = failed?.published === "failed" ? { failure: { error: failed.error } } : {};
  return { published: count, parked, lost: false, ...failure };
}

/** The first refused event of each key, with the events of the key behind it that were not accepted either. */
function refusalsOf(events: readonly QueuedEvent[], results: readonly Published[]): Map<string, Refusal> {
  const refusals = new Map<string, Refusal & { readonly events: QueuedEvent[] }>();
  for (const [i, event] of events.entries()) {
    const result = results[i];
    const name = orderKey(event.message);
    const found = refusals.get(name);
    if (found !== undefined && result?.published !== "acknowledged") found.events.push(event);
    if (found !== undefined || result?.published !== "refused") continue;
    refusals.set(name, { refused: event, events: [event], reason: reasonOf(result.error) });
  }
  return refusals;
}

function keyAt(events: readonly QueuedEvent[], i: number): string {
  const event = events[i];
  return event === undefined ? "" : orderKey(event.message);
}
