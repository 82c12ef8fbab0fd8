import { backoffMs } from "../internal/runtime.ts";
import type { Runtime } from "../internal/runtime.ts";

/**
 * Whether the database is away. While it is, one batch at a time is let through after a growing pause, to find out;
 * the rest waits.
 */
export interface Outage {
  readonly active: boolean;
  /** A pause is over, and nothing got through or failed since. */
  readonly probing: boolean;
  /** How many batches may be in work now, of `concurrency`. */
  allowed(concurrency: number): number;
  /** A batch found it away. */
  begin(error: unknown): void;
  /** A batch got through. */
  end(): void;
  stop(): void;
}

/** What an outage tells. */
export interface OutageListener {
  paused(error: unknown): void;
  resumed(): void;
  /** The pause is over: try one batch. */
  probe(): void;
}

const pause = { baseMs: 200, maxMs: 10_000 };

/** No outage, to begin with. */
export function outage(listener: OutageListener, runtime: Runtime): Outage {
  const stopped = new AbortController();
  let failures = 0;
  let probing = false;
  let sleeping = false;

  async function wait(): Promise<void> {
    sleeping = true;
    probing = false;
    await runtime.sleep(backoffMs(failures, pause, runtime.random), stopped.signal);
    sleeping = false;
    if (stopped.signal.aborted || failures === 0) return;
    probing = true;
    listener.probe();
  }

  return {
    get active() {
      return failures > 0;
    },
    get probing() {
      return probing;
    },
    allowed: (concurrency) => {
      if (failures === 0) return concurrency;
      return probing ? 1 : 0;
    },
    begin: (error) => {
      if (stopped.signal.aborted) return;
      if (failures === 0) listener.paused(error);
      // Batches that were in work together find out together: that is one failure.
      if (sleeping) return;
      failures += 1;
      void wait();
    },
    end: () => {
      if (failures === 0) return;
      failures = 0;
      probing = false;
      listener.resumed();
    },
    stop: () => stopped.abort(),
  };
}
