import type { Running } from "../../internal/loop.ts";
import type { Runtime } from "../../internal/runtime.ts";

/** What is to become of a shard after a turn: look again, wait for a wake, or rest a while first. */
export type After = "again" | "done" | { readonly restMs: number };

/** Shards at work, each in one place only, some of them at the same time. */
export interface Workers extends Running {
  wake(shards: readonly number[]): void;
  /** Resolves when no turn of the shard runs. */
  idle(shard: number): Promise<void>;
}

/** Settings of {@link startWorkers}. */
export interface WorkerOptions {
  readonly concurrency: number;
  /** One batch of a shard; does not reject. */
  turn(shard: number): Promise<After>;
  readonly runtime: Runtime;
}

/** Gives turns to the shards that were woken, the one that waits longest first. */
export function startWorkers({ concurrency, turn, runtime }: WorkerOptions): Workers {
  const waiting = new Set<number>();
  const resting = new Set<number>();
  const running = new Map<number, Promise<void>>();
  const stopping = new AbortController();

  function pump(): void {
    for (const shard of waiting) {
      if (stopping.signal.aborted || running.size >= concurrency) return;
      if (running.has(shard)) continue;
      waiting.delete(shard);
      running.set(shard, run(shard));
    }
  }

  async function run(shard: number): Promise<void> {
    const after = await turn(shard);
    running.delete(shard);
    if (after === "again") waiting.add(shard);
    if (typeof after === "object") void rest(shard, after.restMs);
    pump();
  }

  async function rest(shard: number, ms: number): Promise<void> {
    resting.add(shard);
    await runtime.sleep(ms, stopping.signal);
    resting.delete(shard);
    wake([shard]);
  }

  function wake(shards: readonly number[]): void {
    for (const shard of shards) if (!resting.has(shard)) waiting.add(shard);
    pump();
  }

  const stop = async (): Promise<void> => {
    stopping.abort();
    await Promise.all(running.values());
  };
  return {
    wake,
    idle: async (shard) => {
      waiting.delete(shard);
      await running.get(shard);
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}
