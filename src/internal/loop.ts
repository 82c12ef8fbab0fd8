import { systemRuntime } from "./runtime.ts";
import type { Runtime } from "./runtime.ts";

/** The start/stop contract of everything that runs in the background: idempotent, awaited, disposable. */
export interface Running extends AsyncDisposable {
  /** Asks the work in progress to end and waits for it; a second call waits for the same end. */
  stop(): Promise<void>;
}

/** Settings of {@link startLoop}. */
export interface LoopOptions {
  /** Pause between the end of one round and the start of the next; jittered by a tenth, so that instances spread out. */
  readonly everyMs: number;
  /** One round. It should end soon once the signal aborts. */
  work(signal: AbortSignal): Promise<void>;
  /** Told of a failed round; the loop goes on, with a growing pause: no tight loop during an outage. */
  onError(error: unknown): void;
  readonly runtime?: Runtime;
}

/** The first pause after a failed round, and the longest of a loop that runs more often than that. */
const retryMs = { first: 200, longest: 5000 };

/** Runs `work` again and again until it is stopped. The first round starts at once. */
export function startLoop({ everyMs, work, onError, runtime = systemRuntime }: LoopOptions): Running {
  const controller = new AbortController();
  const { signal } = controller;

  async function rounds(): Promise<void> {
    for (let failures = 0; !signal.aborted;) {
      try {
        await work(signal);
        failures = 0;
      } catch (error) {
        failures += 1;
        if (!signal.aborted) onError(error);
      }
      const pauseMs =
        failures === 0
          ? everyMs
          : Math.min(Math.max(everyMs, retryMs.longest), retryMs.first * 2 ** (failures - 1));
      if (!signal.aborted) await runtime.sleep(pauseMs * (0.9 + runtime.random() * 0.2), signal);
    }
  }

  const ended = rounds();
  const stop = async (): Promise<void> => {
    controller.abort();
    await ended;
  };
  return { stop, [Symbol.asyncDispose]: stop };
}
