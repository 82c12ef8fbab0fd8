import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";

export { backoffMs } from "./backoff.ts";

/** What is not a function of its input, passed in so that tests decide it. */
export interface Runtime {
  /** Uniform in [0, 1). */
  random(): number;
  /** Waits, at most until the signal aborts; never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** A UUIDv7: in time order, so that inserts land on the right edge of an index. */
  newId(): string;
  /** Milliseconds of a monotonic clock; for durations only, deadlines in rows are the database's. */
  monotonicMs(): number;
}

/** The real one. */
export const systemRuntime: Runtime = {
  random: Math.random,
  sleep: async (ms, signal) => {
    await delay(ms, undefined, signal ? { signal } : {}).catch(() => {});
  },
  newId,
  monotonicMs: () => performance.now(),
};

/**
 * RFC 9562 UUIDv7 from a v4, whose random bits and variant stay: Node keeps randomness for v4 in stock, and asking the
 * system for it at every command was a tenth of idemkit's own CPU time.
 */
function newId(): string {
  const ms = Date.now().toString(16).padStart(12, "0");
  return `${ms.slice(0, 8)}-${ms.slice(8)}-7${randomUUID().slice(15)}`;
}
