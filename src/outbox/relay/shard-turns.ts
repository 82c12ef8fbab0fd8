import { backoffMs } from "../../internal/runtime.ts";
import type { Leases } from "./leases.ts";
import type { RelaySettings } from "./options.ts";
import type { OutboxStore } from "./store.ts";
import type { Tally } from "./tally.ts";
import { takeTurn } from "./turn.ts";
import type { TurnResult } from "./turn.ts";
import { noAnswer, within } from "./within.ts";
import type { After } from "./workers.ts";

/** Batches shrink down to this where they fail, or where publishing takes longer than a stop should have to wait. */
const smallBatch = 100;
const slowMs = 1000;
const backoff = { baseMs: 100, maxMs: 5000 };
/** How many leases a turn may take before its shard is left to others: a connection or a broker that never answers. */
const stuckLeases = 4;

/** What each shard has come to: the size of its next batch, and how often it failed in a row. */
interface ShardState {
  limit: number;
  failures: number;
}

/** Takes turns, and says after each what is to become of the shard. */
export function shardTurns(
  store: OutboxStore,
  settings: RelaySettings,
  tally: Tally,
  leases: () => Pick<Leases, "get" | "abandon">,
): (shard: number) => Promise<After> {
  const { batchSize, leaseMs, runtime } = settings;
  const states = new Map<number, ShardState>();

  return async (shard) => {
    const lease = leases().get(shard);
    if (lease === undefined) return "done";
    const state = states.get(shard) ?? { limit: batchSize, failures: 0 };
    states.set(shard, state);
    try {
      // Now and then past the small batch: what stands behind keys that fail isn't theirs to hold up.
      const limit = state.failures % 4 === 3 ? batchSize : state.limit;
      const result = await within(leaseMs * stuckLeases, takeTurn(store, settings, lease, limit));
      if (result === noAnswer) {
        leases().abandon(shard);
        throw new Error("no answer: the shard is left to others");
      }
      tally.count(result);
      if (result.lost) leases().abandon(shard);
      if (result.failure !== undefined) return failed(state, result.failure.error, result.published === 0);
      return result.lost ? "done" : next(state, result, batchSize);
    } catch (error) {
      return failed(state, error, true);
    }
  };

  /** A batch shrinks where nothing got through: where some did, those behind the keys that fail must come into sight. */
  function failed(state: ShardState, error: unknown, shrinks: boolean): After {
    tally.failed(error);
    state.failures += 1;
    if (shrinks) state.limit = smaller(state.limit);
    return { restMs: backoff.baseMs / 2 + backoffMs(state.failures, backoff, runtime.random) };
  }
}

function next(state: ShardState, { read, publishMs }: TurnResult, batchSize: number): After {
  const full = read >= state.limit;
  state.failures = 0;
  if (publishMs > slowMs) state.limit = smaller(state.limit);
  else if (full) state.limit = Math.min(batchSize, state.limit * 2);
  if (full) return "again";
  return read > 0 ? "look" : "done";
}

function smaller(limit: number): number {
  return Math.min(limit, Math.max(smallBatch, Math.floor(limit / 2)));
}
