import { backoffMs, systemRuntime } from "../internal/runtime.ts";

/** Settings of {@link lives}. */
export interface LivesSettings {
  /** Aborts when there is to be no further life. */
  readonly signal: AbortSignal;
  /** One life of a client; it resolves when the client is of no more use, and at once after the signal. */
  live(): Promise<void>;
  /** Puts the client away. */
  end(): Promise<void>;
  failed(error: unknown): void;
}

/** Pauses between two lives. A life that lasted longer than the longest of them was a good one. */
const restart = { baseMs: 200, maxMs: 10_000 };

/** Starts a client anew whenever it has died, until the signal aborts: a member of a group outlives any outage. */
export async function lives({ signal, live, end, failed }: LivesSettings): Promise<void> {
  for (let failures = 0; !signal.aborted; failures += 1) {
    const from = systemRuntime.monotonicMs();
    try {
      await live();
    } catch (error) {
      failed(error);
    }
    if (systemRuntime.monotonicMs() - from > restart.maxMs) failures = 0;
    await end();
    await systemRuntime.sleep(backoffMs(failures, restart, systemRuntime.random), signal);
  }
}

/** A promise that is fulfilled when the signal aborts. */
export function abortOf(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
