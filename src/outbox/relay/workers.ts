import type { Running } from "../../internal/loop.ts";
import type { Runtime } from "../../internal/runtime.ts";

/**
 * What is to become of a shard after a turn: another turn, since its batch was full; a look whether there is more, which
 * one statement answers for all shards; nothing until it is woken; or a rest first.
 */
export type After = "again" | "look" | "done" | { readonly restMs: number };

/** Shards at work, each in one place only, some of them at the same time. */
export interface Workers extends Running {
  wake(shards: readonly number[]): void;
  /** Whether a turn of the shard runs now. */
  isBusy(shard: number): boolean;
  /** Resolves when no turn of the shard runs. */
  idle(shard: number): Promise<void>;
}

/** Settings of {@link startWorkers}. */
export interface WorkerOptions {
  readonly concurrency: number;
  /** One batch of a shard; does not reject. */
  turn(shard: number): Promise<After>;
  /** Asked for when no shard waits and one that had its turn may have more. */
  look(): void;
  readonly runtime: Runtime;
}

/** Gives turns to the shards that were woken, the one that waits longest first. */
export function startWorkers({ concurrency, turn, look, runtime }: WorkerOptions): Workers {
  const waiting = new Set<number>();
  const resting = new Set<number>();
  const running = new Map<number, Promise<void>>();
  let lookWanted = false;
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
    if (after === "look") lookWanted = true;
    if (typeof after === "object") void rest(shard, after.restMs);
    pump();
    if (!lookWanted || waiting.size > 0) return;
    lookWanted = false;
    look();
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
    isBusy: (shard) => running.has(shard),
    idle: async (shard) => {
      waiting.delete(shard);
      await running.get(shard);
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}
