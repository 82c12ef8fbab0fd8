import type { Running } from "../../internal/loop.ts";
import { backoffMs } from "../../internal/runtime.ts";
import type { Runtime } from "../../internal/runtime.ts";

/** A loop that can be asked for its next round before its time. */
export interface PacedLoop extends Running {
  /** Has the next round begin now, or right after the present one. */
  poke(): void;
}

/** Settings of {@link startPacedLoop}. */
export interface PacedLoopOptions {
  readonly everyMs: number;
  /** The longest pause after failed rounds. */
  readonly maxRetryMs: number;
  work(): Promise<void>;
  onError(error: unknown): void;
  readonly runtime: Runtime;
}

const firstRetryMs = 100;

/** Runs `work` at once and then again and again, jittered; after failures with growing pauses, never in a tight loop. */
export function startPacedLoop({ everyMs, maxRetryMs, work, onError, runtime }: PacedLoopOptions): PacedLoop {
  const stopping = new AbortController();
  let poked = false;
  let pause = new AbortController();

  async function rounds(): Promise<void> {
    for (let failures = 0; !stopping.signal.aborted;) {
      poked = false;
      pause = new AbortController();
      try {
        await work();
        failures = 0;
      } catch (error) {
        failures += 1;
        if (!stopping.signal.aborted) onError(error);
      }
      if (stopping.signal.aborted || (poked && failures === 0)) continue;
      const jitteredMs = everyMs * (0.9 + runtime.random() * 0.2);
      const retryMs =
        firstRetryMs / 2 + backoffMs(failures, { baseMs: firstRetryMs, maxMs: maxRetryMs }, runtime.random);
      await runtime.sleep(failures === 0 ? jitteredMs : retryMs, pause.signal);
    }
  }

  const ended = rounds();
  const stop = async (): Promise<void> => {
    stopping.abort();
    pause.abort();
    await ended;
  };
  return {
    poke: () => {
      poked = true;
      pause.abort();
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}
