import { backoffMs, systemRuntime } from "../../internal/runtime.ts";
import type {
  ConsumedRecord,
  GroupListener,
  GroupMember,
  GroupSettings,
  PartitionOffset,
  TopicPartition,
} from "../port.ts";
import { tellingAssigner } from "./assigner.ts";
import type {
  KafkaJs,
  KafkaJsBatchPayload,
  KafkaJsConsumedMessage,
  KafkaJsConsumer,
  KafkaJsOffsets,
} from "./structure.ts";

type Commit = KafkaJsBatchPayload["commitOffsetsIfNecessary"];

/** One life of a KafkaJS consumer: from its start to its crash or stop. */
interface Life {
  readonly consumer: KafkaJsConsumer;
  /** Resolves when the consumer has crashed and won't come back by itself. */
  readonly crashed: Promise<void>;
}

/** Retries of one request; what goes beyond is a crash, after which we start anew. */
const retry = { retries: 4, initialRetryTime: 100, maxRetryTime: 1000, restartOnFailure: async () => false };

/** Pauses between two lives. */
const restart = { baseMs: 200, maxMs: 10_000 };

/**
 * A member on KafkaJS. Batches are taken over at once and never worked on inside `eachBatch`: so the client goes on
 * with its heartbeats and notices a rebalance however long a handler takes.
 */
export function joinGroup(
  kafka: KafkaJs,
  further: Readonly<Record<string, unknown>>,
  settings: GroupSettings,
  listener: GroupListener,
): GroupMember {
  const stopping = new AbortController();
  let consumer: KafkaJsConsumer | undefined;
  let owned: readonly TopicPartition[] = [];
  let commitNow: Commit | undefined;
  const fetches = fetchWatch();

  /** Synchronous up to the listener's first await: nothing is committed for these from here on. */
  function loseAll(lost: boolean): Promise<void> {
    const given = owned;
    owned = [];
    const ended = given.length > 0 ? listener.revoked(given, lost) : Promise.resolve();
    commitNow = undefined;
    return ended;
  }

  function joined(payload: unknown): void {
    void loseAll(true);
    fetches.rejoined();
    owned = partitionsOf(payload);
    // A pause would outlive the assignment inside the client.
    consumer?.resume(byTopic(owned));
    listener.assigned(owned);
  }

  async function takeOver(payload: KafkaJsBatchPayload): Promise<void> {
    const { batch, resolveOffset, commitOffsetsIfNecessary } = payload;
    if (!owned.some(({ topic, partition }) => topic === batch.topic && partition === batch.partition)) return;
    // Not resolved, so it is fetched again, from where this assignment begins.
    if (fetches.mayBeStale()) return;
    commitNow = commitOffsetsIfNecessary;
    resolveOffset(batch.lastOffset());
    listener.records({ topic: batch.topic, partition: batch.partition }, batch.messages.map(recordOf));
  }

  async function live(): Promise<Life> {
    const made = kafka.consumer({
      ...further,
      groupId: settings.groupId,
      sessionTimeout: settings.sessionTimeoutMs,
      rebalanceTimeout: settings.rebalanceTimeoutMs,
      heartbeatInterval: settings.heartbeatMs,
      maxWaitTimeInMs: settings.maxWaitMs,
      allowAutoTopicCreation: false,
      partitionAssigners: [tellingAssigner(() => void loseAll(false))],
      retry,
    });
    consumer = made;
    const crashed = new Promise<void>((resolve) => {
      made.on(made.events.CRASH, ({ payload }) => {
        listener.failed(errorOf(payload));
        resolve();
      });
    });
    // Earlier than JoinGroup where the client tells of it: the last offsets get through before the group moves on.
    made.on(made.events.REBALANCING, () => void loseAll(false));
    made.on(made.events.FETCH_START, ({ payload }) => fetches.started((payload as { nodeId: unknown }).nodeId));
    made.on(made.events.GROUP_JOIN, ({ payload }) => joined(payload));
    await made.connect();
    await made.subscribe({ topics: [...settings.topics], fromBeginning: settings.startAt === "earliest" });
    await made.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      partitionsConsumedConcurrently: 1,
      eachBatch: takeOver,
    });
    return { consumer: made, crashed };
  }

  async function lives(): Promise<void> {
    const stopped = new Promise<void>((resolve) => stopping.signal.addEventListener("abort", () => resolve()));
    for (let failures = 0; !stopping.signal.aborted; failures += 1) {
      try {
        const { crashed } = await live();
        const livedFrom = systemRuntime.monotonicMs();
        await Promise.race([crashed, stopped]);
        if (systemRuntime.monotonicMs() - livedFrom > restart.maxMs) failures = 0;
      } catch (error) {
        listener.failed(error);
      }
      await end();
      await systemRuntime.sleep(backoffMs(failures, restart, systemRuntime.random), stopping.signal);
    }
  }

  async function end(): Promise<void> {
    await loseAll(!stopping.signal.aborted);
    const last = consumer;
    consumer = undefined;
    await last?.disconnect().catch(() => {});
  }

  const ended = lives();
  return {
    pause: (partitions) => consumer?.pause(byTopic(partitions)),
    resume: (partitions) => consumer?.resume(byTopic(partitions)),
    // The function of a batch, and not `consumer.commitOffsets`: that one tries again under a later generation.
    commit: async (offsets) => commitNow?.(offsetsOf(offsets)),
    leave: async () => {
      stopping.abort();
      await ended;
    },
  };
}

/** No response comes later than this. */
const fetchEndsMs = 60_000;

/**
 * With several brokers KafkaJS rejoins from one broker's fetch while another's is still under way. What that one brings
 * was asked for by the last assignment, at its position: taken over now, everything between the committed offset and
 * that position would be skipped. A broker is trusted again with its next fetch.
 */
function fetchWatch(): { rejoined(): void; started(nodeId: unknown): void; mayBeStale(): boolean } {
  const current = new Map<unknown, number>();
  const stale = new Map<unknown, number>();
  return {
    rejoined: () => {
      for (const [nodeId, since] of current) stale.set(nodeId, since);
    },
    started: (nodeId) => {
      current.set(nodeId, systemRuntime.monotonicMs());
      stale.delete(nodeId);
    },
    mayBeStale: () => {
      const now = systemRuntime.monotonicMs();
      for (const [nodeId, since] of stale) if (now - since > fetchEndsMs) stale.delete(nodeId);
      return stale.size > 0;
    },
  };
}

function errorOf(payload: unknown): unknown {
  return typeof payload === "object" && payload !== null && "error" in payload ? payload.error : payload;
}

function partitionsOf(payload: unknown): TopicPartition[] {
  const { memberAssignment } = payload as { memberAssignment: Record<string, number[]> };
  return Object.entries(memberAssignment).flatMap(([topic, partitions]) =>
    partitions.map((partition) => ({ topic, partition })),
  );
}

function byTopic(partitions: readonly TopicPartition[]): { topic: string; partitions: number[] }[] {
  const topics = new Map<string, number[]>();
  for (const { topic, partition } of partitions) topics.set(topic, [...(topics.get(topic) ?? []), partition]);
  return [...topics].map(([topic, list]) => ({ topic, partitions: list }));
}

function offsetsOf(offsets: readonly PartitionOffset[]): KafkaJsOffsets {
  return {
    topics: offsets.map(({ topic, partition, offset }) => ({
      topic,
      partitions: [{ partition, offset: offset.toString() }],
    })),
  };
}

function recordOf({ offset, key, value, headers = {} }: KafkaJsConsumedMessage): ConsumedRecord {
  const texts: Record<string, string> = {};
  for (const [name, given] of Object.entries(headers)) {
    // Of a repeated header the last one counts.
    const last = Array.isArray(given) ? given.at(-1) : given;
    if (last !== undefined) texts[name] = last.toString();
  }
  return { offset: BigInt(offset), key, value, headers: texts };
}
