import { systemRuntime } from "../../internal/runtime.ts";
import { attempt } from "../attempt.ts";
import { lives } from "../lives.ts";
import type { GroupListener, GroupMember, GroupSettings } from "../port.ts";
import { byPartition, committed, connected, consumed, disconnected, nameOf, withoutOffset } from "./calls.ts";
import type {
  ConfluentModule,
  RdKafkaConf,
  RdKafkaConsumer,
  RdKafkaError,
  RdKafkaPartition,
} from "./structure.ts";

/** librdkafka's codes of a rebalance, and of an error after which a client is of no more use. */
const assignCode = -175;
const fatalCode = -150;

/** Records of one call, at most. */
const consumeMax = 1000;

/** How long leaving may wait for the last revocation. */
const leaveMs = 15_000;

interface Member {
  readonly settings: GroupSettings;
  readonly listener: GroupListener;
  readonly signal: AbortSignal;
  readonly owned: Map<string, RdKafkaPartition>;
  consumer: RdKafkaConsumer | undefined;
  /** Rebalances one behind the other. */
  rebalancing: Promise<void>;
  consuming: Promise<void>;
  /** The client is of no more use. */
  fatal: boolean;
}

/**
 * A member on librdkafka. It holds a rebalance until the revoked partitions are given back here, which happens when the
 * listener is done with them.
 */
export function joinGroup(
  module: ConfluentModule,
  conf: RdKafkaConf,
  settings: GroupSettings,
  listener: GroupListener,
): GroupMember {
  const stopping = new AbortController();
  const member: Member = {
    settings,
    listener,
    signal: stopping.signal,
    owned: new Map(),
    consumer: undefined,
    rebalancing: Promise.resolve(),
    consuming: Promise.resolve(),
    fatal: false,
  };
  const ended = lives({
    signal: stopping.signal,
    live: () => live(member, module, conf),
    end: () => end(member),
    failed: listener.failed,
  });
  const mine = (partitions: readonly RdKafkaPartition[]): RdKafkaPartition[] =>
    partitions.filter((of) => member.owned.has(nameOf(of))).map(withoutOffset);
  return {
    pause: (partitions) => attempt(() => member.consumer?.pause(mine(partitions))),
    resume: (partitions) => attempt(() => member.consumer?.resume(mine(partitions))),
    commit: async (offsets) => {
      if (member.consumer?.isConnected() === true) await committed(member.consumer, offsets);
    },
    leave: async () => {
      stopping.abort();
      await ended;
    },
  };
}

function confOf(member: Member, conf: RdKafkaConf): RdKafkaConf {
  const { settings } = member;
  return {
    "partition.assignment.strategy": "cooperative-sticky",
    ...conf,
    "group.id": settings.groupId,
    "enable.auto.commit": false,
    "enable.auto.offset.store": false,
    "session.timeout.ms": settings.sessionTimeoutMs,
    "heartbeat.interval.ms": settings.heartbeatMs,
    // Also what a rebalance may take, in librdkafka.
    "max.poll.interval.ms": settings.rebalanceTimeoutMs,
    rebalance_cb: (event: RdKafkaError, partitions: RdKafkaPartition[]) => {
      member.rebalancing = afterwards(member, event.code, partitions);
    },
  };
}

/** One life of the client; resolves when it is over. */
async function live(member: Member, { KafkaConsumer }: ConfluentModule, conf: RdKafkaConf): Promise<void> {
  const { settings, listener, signal } = member;
  member.fatal = false;
  // A topic's setting: among the others it would be ignored.
  const topicConf = { "auto.offset.reset": settings.startAt };
  const consumer = new KafkaConsumer(
    confOf(member, conf) as never,
    topicConf as never,
  ) as unknown as RdKafkaConsumer;
  consumer.on("event.error", (error: RdKafkaError) => {
    listener.failed(error);
    if (error.code === fatalCode) member.fatal = true;
  });
  await connected(consumer);
  member.consumer = consumer;
  consumer.setDefaultConsumeTimeout(settings.maxWaitMs);
  consumer.setDefaultIsTimeoutOnlyForFirstMessage(true);
  consumer.subscribe(settings.topics);
  while (!signal.aborted && !member.fatal) {
    await member.rebalancing;
    member.consuming = consumeOnce(member, consumer);
    await member.consuming;
  }
}

async function consumeOnce(
  { owned, listener, settings, signal }: Member,
  consumer: RdKafkaConsumer,
): Promise<void> {
  try {
    for (const [name, records] of byPartition(await consumed(consumer, consumeMax))) {
      const of = owned.get(name);
      if (of !== undefined) listener.records(withoutOffset(of), records);
    }
  } catch (error) {
    listener.failed(error);
    await systemRuntime.sleep(settings.maxWaitMs, signal);
  }
}

/** One rebalance behind the other. */
async function afterwards(
  member: Member,
  code: number,
  partitions: readonly RdKafkaPartition[],
): Promise<void> {
  const before = member.rebalancing;
  try {
    await before;
    await rebalance(member, code, partitions);
  } catch (error) {
    member.listener.failed(error);
    // A rebalance that nobody answers stops this member for good.
    member.fatal = true;
  }
}

async function rebalance(
  member: Member,
  code: number,
  partitions: readonly RdKafkaPartition[],
): Promise<void> {
  const { consumer, owned, listener } = member;
  if (consumer === undefined) return;
  const cooperative = consumer.rebalanceProtocol() === "COOPERATIVE";
  if (code === assignCode) {
    // What a call that began before brings is of the ownership before, and would be taken for this one's.
    await member.consuming;
    for (const of of partitions) owned.set(nameOf(of), of);
    if (cooperative) consumer.incrementalAssign(partitions);
    else consumer.assign(partitions);
    // A pause may outlive the assignment inside the client.
    consumer.resume(partitions.map(withoutOffset));
    listener.assigned(partitions.map(withoutOffset));
    return;
  }
  await lose(member, partitions, consumer.assignmentLost());
  if (!consumer.isConnected()) return;
  if (cooperative) consumer.incrementalUnassign(partitions);
  else consumer.unassign();
}

async function lose(
  { owned, listener }: Member,
  partitions: readonly RdKafkaPartition[],
  lost: boolean,
): Promise<void> {
  const mine = partitions.filter((of) => owned.delete(nameOf(of)));
  if (mine.length > 0) await listener.revoked(mine.map(withoutOffset), lost);
}

/** Gives the partitions back in order, and goes on polling meanwhile, without which nothing would happen. */
async function end(member: Member): Promise<void> {
  const { consumer, owned, listener } = member;
  if (consumer?.isConnected() === true) {
    try {
      consumer.unsubscribe();
      const deadline = systemRuntime.monotonicMs() + leaveMs;
      while (owned.size > 0 && systemRuntime.monotonicMs() < deadline) {
        await consumed(consumer, 1).catch(() => {});
        await member.rebalancing;
      }
    } catch (error) {
      listener.failed(error);
    }
    await disconnected(consumer);
  }
  // Only now: the last offsets are committed inside the revocation.
  member.consumer = undefined;
  await lose(member, [...owned.values()], true);
}
