import type { CallOf } from "./execution.ts";
import type { InProcess } from "./in-process.ts";

/** Between two looks at an operation that another process runs; jittered, so that waiters spread out. */
const pollMs = { min: 50, spread: 200 };

/** The bounded waiting of one duplicate, outside the pool. */
export interface Waiter {
  /** Waits for an attempt of this process; false when the time, or the number of waiters, is used up. */
  until(settled: Promise<void>): Promise<boolean>;
  /** Waits a moment for an attempt of another process; false as above. */
  poll(): Promise<boolean>;
}

/** A waiter for one call; its time starts now. */
export function waiter<Tx>(
  { settings, runtime }: CallOf<Tx>,
  { waiting }: InProcess,
  identity: string,
): Waiter {
  const deadline = runtime.monotonicMs() + settings.waitMs;

  async function bounded(ms: number, settled?: Promise<void>): Promise<boolean> {
    const left = deadline - runtime.monotonicMs();
    const count = waiting.get(identity) ?? 0;
    if (left <= 0 || count >= settings.maxWaiting) return false;
    waiting.set(identity, count + 1);
    try {
      await sleepOr(Math.min(ms, left), settled);
    } finally {
      const now = (waiting.get(identity) ?? 1) - 1;
      if (now === 0) waiting.delete(identity);
      else waiting.set(identity, now);
    }
    return true;
  }

  async function sleepOr(ms: number, settled?: Promise<void>): Promise<void> {
    const awake = new AbortController();
    await Promise.race([runtime.sleep(ms, awake.signal), ...(settled === undefined ? [] : [settled])]);
    awake.abort();
  }

  return {
    until: (settled) => bounded(settings.waitMs, settled),
    poll: () => bounded(pollMs.min + runtime.random() * pollMs.spread),
  };
}
