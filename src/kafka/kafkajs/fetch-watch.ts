import { systemRuntime } from "../../internal/runtime.ts";

/** Tells records of this assignment from those that were asked for by the last one. */
export interface FetchWatch {
  rejoined(): void;
  started(nodeId: unknown): void;
  mayBeStale(): boolean;
}

/** No response comes later than this. */
const fetchEndsMs = 60_000;

/**
 * With several brokers KafkaJS rejoins from one broker's fetch while another's is still under way. What that one brings
 * was asked for by the last assignment, at its position: taken over now, everything between the committed offset and
 * that position would be skipped. A broker is trusted again with its next fetch.
 */
export function fetchWatch(): FetchWatch {
  const current = new Map<unknown, number>();
  const stale = new Map<unknown, number>();
  return {
    rejoined: () => {
      for (const [nodeId, since] of current) stale.set(nodeId, since);
    },
    started: (nodeId) => {
      current.set(nodeId, systemRuntime.monotonicMs());
      stale.delete(nodeId);
    },
    mayBeStale: () => {
      const now = systemRuntime.monotonicMs();
      for (const [nodeId, since] of stale) if (now - since > fetchEndsMs) stale.delete(nodeId);
      return stale.size > 0;
    },
  };
}
