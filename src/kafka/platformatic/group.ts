import { backoffMs, systemRuntime } from "../../internal/runtime.ts";
import type { GroupListener, GroupMember, GroupSettings, PartitionOffset, TopicPartition } from "../port.ts";
import { commitAs } from "./commit.ts";
import type { Membership } from "./commit.ts";
import { fetchLoop } from "./fetch-loop.ts";
import type { FetchLoop } from "./fetch-loop.ts";
import { protocolErrorOf } from "./protocol-error.ts";
import type { PlatformaticConsumer, PlatformaticModule } from "./structure.ts";

/** Pauses between two lives of the client. */
const restart = { baseMs: 200, maxMs: 10_000 };

/** What is owned under one generation. */
interface Tenure {
  readonly membership: Membership;
  readonly owned: readonly TopicPartition[];
  readonly fetches: FetchLoop;
}

/**
 * A member on `@platformatic/kafka`. The client keeps the membership; the records are fetched here and not by its
 * stream, which would mix what it had buffered for one assignment into the next.
 */
export function joinGroup(
  kafka: PlatformaticModule,
  options: Readonly<Record<string, unknown>>,
  settings: GroupSettings,
  listener: GroupListener,
): GroupMember {
  const stopping = new AbortController();
  const stopped = new Promise<void>((resolve) => stopping.signal.addEventListener("abort", () => resolve()));
  const { maxBytesPerPartition = 1_048_576 } = options as { maxBytesPerPartition?: number };
  let consumer: PlatformaticConsumer | undefined;
  let tenure: Tenure | undefined;

  /** Synchronous up to the listener's first await: the last offsets are sent under the old generation. */
  function lose(lost: boolean): Promise<void> {
    const given = tenure;
    if (given === undefined) return Promise.resolve();
    given.fetches.stop();
    const ended = given.owned.length > 0 ? listener.revoked(given.owned, lost) : Promise.resolve();
    tenure = undefined;
    return ended;
  }

  function joined(client: PlatformaticConsumer, payload: unknown): void {
    void lose(true);
    const { assignments } = payload as { assignments: { topic: string; partitions: number[] }[] | null };
    const owned = (assignments ?? []).flatMap(({ topic, partitions }) =>
      partitions.map((partition) => ({ topic, partition })),
    );
    const { generationId, memberId } = client;
    const fetches = fetchLoop({
      consumer: client,
      settings,
      partitions: owned,
      maxBytesPerPartition,
      records: (from, records) => listener.records(from, records),
      failed: (error) => listener.failed(error),
      protocolErrorOf,
    });
    tenure = { membership: { groupId: settings.groupId, generationId, memberId }, owned, fetches };
    listener.assigned(owned);
  }

  /** One life of the client; resolves when it is over. */
  async function live(): Promise<void> {
    const client = new kafka.Consumer({
      ...options,
      groupId: settings.groupId,
      autocommit: false,
      sessionTimeout: settings.sessionTimeoutMs,
      rebalanceTimeout: settings.rebalanceTimeoutMs,
      heartbeatInterval: settings.heartbeatMs,
    } as never) as unknown as PlatformaticConsumer;
    consumer = client;
    const over = new Promise<void>((resolve) => {
      const end = (error: unknown): void => {
        listener.failed(error);
        resolve();
      };
      client.on("error", end);
      // The client sends no further heartbeats after one that failed, and does not look for a new coordinator.
      client.on("consumer:heartbeat:error", (payload) => end((payload as { error: unknown }).error));
      void stopped.then(resolve);
    });
    client.on("consumer:group:rebalance", () => void lose(false));
    client.on("consumer:group:join", (payload) => joined(client, payload));
    client.topics.trackAll(...settings.topics);
    await client.joinGroup({});
    await over;
  }

  async function lives(): Promise<void> {
    for (let failures = 0; !stopping.signal.aborted; failures += 1) {
      const from = systemRuntime.monotonicMs();
      await live().catch((error: unknown) => listener.failed(error));
      if (systemRuntime.monotonicMs() - from > restart.maxMs) failures = 0;
      await lose(!stopping.signal.aborted);
      await consumer?.close(true).catch(() => {});
      await systemRuntime.sleep(backoffMs(failures, restart, systemRuntime.random), stopping.signal);
    }
  }

  async function commit(offsets: readonly PartitionOffset[]): Promise<void> {
    if (consumer === undefined || tenure === undefined) return;
    await commitAs(kafka, consumer, tenure.membership, offsets);
  }

  const ended = lives();
  return {
    pause: (partitions) => tenure?.fetches.pause(partitions),
    resume: (partitions) => tenure?.fetches.resume(partitions),
    commit,
    leave: async () => {
      stopping.abort();
      await ended;
    },
  };
}
