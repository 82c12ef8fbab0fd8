import type { Runtime } from "../internal/runtime.ts";
import type { PartitionWork } from "./partition-work.ts";
import type { PartitionOffset } from "./port.ts";

/** Commits offsets from time to time, one request at a time. */
export interface CommitLoop {
  /** Something has become committable. */
  soon(): void;
  /** Commits what these have reached, now. Synchronous up to the call of the client; never throws. */
  now(works: readonly PartitionWork[]): Promise<void>;
  /** Resolves when no commit of the loop is under way any more. */
  stop(): Promise<void>;
}

/** Settings of {@link commitLoop}. */
export interface CommitSettings {
  readonly everyMs: number;
  readonly runtime: Runtime;
  works(): readonly PartitionWork[];
  commit(offsets: readonly PartitionOffset[]): Promise<void>;
  onCommitted(offsets: readonly PartitionOffset[]): void;
  onError(error: unknown): void;
}

/** Pause after a commit that failed: the brokers are away, or the membership is over and new partitions are coming. */
const failedMs = 1000;

/** The loop runs only while there is something to commit. */
export function commitLoop({
  everyMs,
  runtime,
  works,
  commit,
  onCommitted,
  onError,
}: CommitSettings): CommitLoop {
  const stopped = new AbortController();
  let running = false;
  let ended = Promise.resolve();

  async function send(from: readonly PartitionWork[]): Promise<boolean> {
    const offsets = from.flatMap((work) => work.toCommit() ?? []);
    if (offsets.length === 0) return true;
    try {
      await commit(offsets);
    } catch (error) {
      onError(error);
      return false;
    }
    // By identity: an ownership that began meanwhile is another work.
    for (const work of from) {
      const mine = offsets.find(
        ({ topic, partition }) => topic === work.of.topic && partition === work.of.partition,
      );
      if (mine !== undefined) work.committed(mine.offset);
    }
    onCommitted(offsets);
    return true;
  }

  async function rounds(): Promise<void> {
    while (!stopped.signal.aborted && works().some((work) => work.toCommit() !== undefined)) {
      await runtime.sleep(everyMs, stopped.signal);
      if (stopped.signal.aborted) break;
      if (!(await send(works()))) await runtime.sleep(failedMs, stopped.signal);
    }
    running = false;
  }

  return {
    soon: () => {
      if (running || stopped.signal.aborted) return;
      running = true;
      ended = rounds();
    },
    now: async (from) => void (await send(from)),
    stop: async () => {
      stopped.abort();
      await ended;
    },
  };
}
