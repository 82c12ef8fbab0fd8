import { attempt } from "../attempt.ts";
import { abortOf, lives } from "../lives.ts";
import type {
  ConsumedRecord,
  GroupListener,
  GroupMember,
  GroupSettings,
  PartitionOffset,
  TopicPartition,
} from "../port.ts";
import { tellingAssigner } from "./assigner.ts";
import { fetchWatch } from "./fetch-watch.ts";
import type { FetchWatch } from "./fetch-watch.ts";
import type {
  KafkaJs,
  KafkaJsBatchPayload,
  KafkaJsConsumedMessage,
  KafkaJsConsumer,
  KafkaJsOffsets,
} from "./structure.ts";

/** Retries of one request; what goes beyond is a crash, after which we start anew. */
const retry = {
  retries: 4,
  initialRetryTime: 100,
  maxRetryTime: 1000,
  restartOnFailure: async (): Promise<boolean> => false,
};

interface Member {
  readonly settings: GroupSettings;
  readonly listener: GroupListener;
  readonly fetches: FetchWatch;
  consumer: KafkaJsConsumer | undefined;
  owned: readonly TopicPartition[];
  /**
   * The function that came with a batch, and not `consumer.commitOffsets`, which tries again under a later generation.
   * What has brought no batch has nothing to commit.
   */
  commitNow: KafkaJsBatchPayload["commitOffsetsIfNecessary"] | undefined;
}

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
  const stopped = abortOf(stopping.signal);
  const member: Member = {
    settings,
    listener,
    fetches: fetchWatch(),
    consumer: undefined,
    owned: [],
    commitNow: undefined,
  };
  const ended = lives({
    signal: stopping.signal,
    live: async () => {
      const consumer = kafka.consumer({ ...further, ...configOf(member) });
      member.consumer = consumer;
      const crashed = listen(member, consumer);
      await start(member, consumer);
      await Promise.race([crashed, stopped]);
    },
    end: async () => {
      await loseAll(member, !stopping.signal.aborted);
      await member.consumer?.disconnect().catch(() => {});
      // What a join that was under way has brought meanwhile.
      await loseAll(member, true);
      member.consumer = undefined;
    },
    failed: listener.failed,
  });
  return {
    pause: (partitions) => attempt(() => member.consumer?.pause(byTopic(partitions))),
    resume: (partitions) => attempt(() => member.consumer?.resume(byTopic(partitions))),
    commit: async (offsets) => member.commitNow?.(offsetsOf(offsets)),
    leave: async () => {
      stopping.abort();
      await ended;
    },
  };
}

function configOf(member: Member): Parameters<KafkaJs["consumer"]>[0] {
  const { settings } = member;
  return {
    groupId: settings.groupId,
    sessionTimeout: settings.sessionTimeoutMs,
    rebalanceTimeout: settings.rebalanceTimeoutMs,
    heartbeatInterval: settings.heartbeatMs,
    maxWaitTimeInMs: settings.maxWaitMs,
    allowAutoTopicCreation: false,
    partitionAssigners: [tellingAssigner(() => void loseAll(member, false))],
    retry,
  };
}

/** Resolves when the client has crashed; it won't come back by itself. */
function listen(member: Member, consumer: KafkaJsConsumer): Promise<void> {
  const { CRASH, REBALANCING, GROUP_JOIN, FETCH_START } = consumer.events;
  // Earlier than JoinGroup where the client tells of it: the last offsets get through before the group moves on.
  consumer.on(REBALANCING, () => void loseAll(member, false));
  consumer.on(GROUP_JOIN, ({ payload }) => joined(member, payload));
  consumer.on(FETCH_START, ({ payload }) => member.fetches.started((payload as { nodeId: unknown }).nodeId));
  return new Promise((resolve) => {
    consumer.on(CRASH, ({ payload }) => {
      member.listener.failed((payload as { error: unknown }).error);
      resolve();
    });
  });
}

async function start(member: Member, consumer: KafkaJsConsumer): Promise<void> {
  const { topics, startAt } = member.settings;
  await consumer.connect();
  await consumer.subscribe({ topics: [...topics], fromBeginning: startAt === "earliest" });
  await consumer.run({
    autoCommit: false,
    eachBatchAutoResolve: false,
    partitionsConsumedConcurrently: 1,
    eachBatch: async (payload) => takeOver(member, payload),
  });
}

/** Synchronous up to the listener's first await: nothing is committed for these from here on. */
function loseAll(member: Member, lost: boolean): Promise<void> {
  const given = member.owned;
  member.owned = [];
  const ended = given.length > 0 ? member.listener.revoked(given, lost) : Promise.resolve();
  member.commitNow = undefined;
  return ended;
}

function joined(member: Member, payload: unknown): void {
  void loseAll(member, true);
  member.fetches.rejoined();
  const { memberAssignment } = payload as { memberAssignment: Record<string, number[]> };
  member.owned = Object.entries(memberAssignment).flatMap(([topic, partitions]) =>
    partitions.map((partition) => ({ topic, partition })),
  );
  // A pause would outlive the assignment inside the client.
  attempt(() => member.consumer?.resume(byTopic(member.owned)));
  member.listener.assigned(member.owned);
}

function takeOver(
  member: Member,
  { batch, resolveOffset, commitOffsetsIfNecessary }: KafkaJsBatchPayload,
): void {
  const { topic, partition } = batch;
  if (!member.owned.some((mine) => mine.topic === topic && mine.partition === partition)) return;
  // Not resolved, so it is fetched again, from where this assignment begins.
  if (member.fetches.mayBeStale()) return;
  member.commitNow = commitOffsetsIfNecessary;
  resolveOffset(batch.lastOffset());
  member.listener.records({ topic, partition }, batch.messages.map(recordOf));
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
