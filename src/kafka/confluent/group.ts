import { backoffMs, systemRuntime } from "../../internal/runtime.ts";
import type { ConsumedRecord, GroupListener, GroupMember, GroupSettings, PartitionOffset } from "../port.ts";
import type {
  ConfluentModule,
  RdKafkaConf,
  RdKafkaConsumer,
  RdKafkaError,
  RdKafkaMessage,
  RdKafkaPartition,
} from "./structure.ts";

/** Pauses between two lives of the client. */
const restart = { baseMs: 200, maxMs: 10_000 };

/** librdkafka's codes of a rebalance, and of an error after which a client is of no more use. */
const assignCode = -175;
const fatalCode = -150;

/** Records of one call, at most. */
const consumeMax = 1000;

/** How long leaving may wait for the last revocation. */
const leaveMs = 15_000;

/**
 * A member on librdkafka. It holds a rebalance until the revoked partitions are given back here, which happens when the
 * listener is done with them.
 */
export function joinGroup(
  { KafkaConsumer }: ConfluentModule,
  conf: RdKafkaConf,
  settings: GroupSettings,
  listener: GroupListener,
): GroupMember {
  const stopping = new AbortController();
  const owned = new Map<string, RdKafkaPartition>();
  let consumer: RdKafkaConsumer | undefined;
  let rebalancing: Promise<void> = Promise.resolve();
  let consuming: Promise<void> = Promise.resolve();

  async function rebalance(client: RdKafkaConsumer, code: number, partitions: readonly RdKafkaPartition[]): Promise<void> {
    const cooperative = client.rebalanceProtocol() === "COOPERATIVE";
    if (code === assignCode) {
      // What a call that began before brings is of the ownership before, and would be taken for this one's.
      await consuming;
      for (const of of partitions) owned.set(nameOf(of), of);
      listener.assigned(partitions.map(bare));
      if (cooperative) client.incrementalAssign(partitions);
      else client.assign(partitions);
      return;
    }
    await lose(partitions, client.assignmentLost());
    if (!client.isConnected()) return;
    if (cooperative) client.incrementalUnassign(partitions);
    else client.unassign();
  }

  async function lose(partitions: readonly RdKafkaPartition[], lost: boolean): Promise<void> {
    const mine = partitions.filter((of) => owned.delete(nameOf(of)));
    if (mine.length > 0) await listener.revoked(mine.map(bare), lost);
  }

  function confOf(onRebalance: (code: number, partitions: readonly RdKafkaPartition[]) => void): RdKafkaConf {
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
      rebalance_cb: (error: RdKafkaError, partitions: RdKafkaPartition[]) => onRebalance(error.code, partitions),
    };
  }

  /** One life of the client; resolves when it is over. */
  async function live(): Promise<void> {
    let fatal = false;
    const onRebalance = (code: number, partitions: readonly RdKafkaPartition[]): void => {
      rebalancing = rebalancing.then(() => rebalance(client, code, partitions)).catch((error: unknown) => {
        listener.failed(error);
        // A rebalance that nobody answers stops this member for good.
        fatal = true;
      });
    };
    // A topic's setting: among the others it would be ignored.
    const topicConf = { "auto.offset.reset": settings.startAt };
    const client = new KafkaConsumer(confOf(onRebalance) as never, topicConf as never) as unknown as RdKafkaConsumer;
    client.on("event.error", ((error: RdKafkaError) => {
      listener.failed(error);
      if (error.code === fatalCode) fatal = true;
    }) as never);
    await connected(client);
    consumer = client;
    client.setDefaultConsumeTimeout(settings.maxWaitMs);
    client.setDefaultIsTimeoutOnlyForFirstMessage(true);
    client.subscribe(settings.topics);
    while (!stopping.signal.aborted && !fatal) {
      await rebalancing;
      consuming = consumeOnce(client);
      await consuming;
    }
  }

  async function consumeOnce(client: RdKafkaConsumer): Promise<void> {
    try {
      const messages = await consumed(client, consumeMax);
      for (const [name, records] of byPartition(messages)) {
        const of = owned.get(name);
        if (of !== undefined) listener.records(bare(of), records);
      }
    } catch (error) {
      listener.failed(error);
      await systemRuntime.sleep(settings.maxWaitMs, stopping.signal);
    }
  }

  /** Gives the partitions back in order, and goes on polling meanwhile, without which nothing would happen. */
  async function end(): Promise<void> {
    const last = consumer;
    if (last?.isConnected() !== true) return;
    try {
      last.unsubscribe();
      const deadline = systemRuntime.monotonicMs() + leaveMs;
      while (owned.size > 0 && systemRuntime.monotonicMs() < deadline) {
        await consumed(last, 1).catch(() => {});
        await rebalancing;
      }
    } catch (error) {
      listener.failed(error);
    }
    // Only now: the last offsets are committed inside the revocation.
    consumer = undefined;
    await new Promise<void>((resolve) => last.disconnect(() => resolve()));
  }

  async function lives(): Promise<void> {
    for (let failures = 0; !stopping.signal.aborted; failures += 1) {
      const from = systemRuntime.monotonicMs();
      await live().catch((error: unknown) => listener.failed(error));
      if (systemRuntime.monotonicMs() - from > restart.maxMs) failures = 0;
      await end();
      await lose([...owned.values()], true);
      await systemRuntime.sleep(backoffMs(failures, restart, systemRuntime.random), stopping.signal);
    }
  }

  const ended = lives();
  const mine = (partitions: readonly RdKafkaPartition[]): RdKafkaPartition[] =>
    partitions.filter((of) => owned.has(nameOf(of))).map(bare);
  return {
    // Both throw where a partition is not assigned any more.
    pause: (partitions) => attempt(() => consumer?.pause(mine(partitions))),
    resume: (partitions) => attempt(() => consumer?.resume(mine(partitions))),
    commit: (offsets) => commit(consumer, offsets),
    leave: async () => {
      stopping.abort();
      await ended;
    },
  };
}

function attempt(work: () => unknown): void {
  try {
    work();
  } catch {
    // The next rebalance or record sets it right.
  }
}

function connected(client: RdKafkaConsumer): Promise<void> {
  return new Promise((resolve, reject) => {
    client.connect({ timeout: 10_000 }, (error) => (error ? reject(error) : resolve()));
  });
}

function consumed(client: RdKafkaConsumer, number: number): Promise<RdKafkaMessage[]> {
  return new Promise((resolve, reject) => {
    client.consume(number, (error, messages = []) => (error ? reject(error) : resolve(messages)));
  });
}

function commit(consumer: RdKafkaConsumer | undefined, offsets: readonly PartitionOffset[]): Promise<void> {
  if (consumer?.isConnected() !== true) return Promise.resolve();
  const list = offsets.map(({ topic, partition, offset }) => ({ topic, partition, offset: Number(offset) }));
  return new Promise((resolve, reject) => {
    consumer.commitCb(list, (error) => (error ? reject(error) : resolve()));
  });
}

function byPartition(messages: readonly RdKafkaMessage[]): Map<string, ConsumedRecord[]> {
  const found = new Map<string, ConsumedRecord[]>();
  for (const message of messages) {
    const records = found.get(nameOf(message)) ?? [];
    found.set(nameOf(message), records);
    records.push(recordOf(message));
  }
  return found;
}

function recordOf({ offset, key, value, headers = [] }: RdKafkaMessage): ConsumedRecord {
  const texts = headers.flatMap((header) => Object.entries(header).map(([name, text]) => [name, text.toString()]));
  return {
    offset: BigInt(offset),
    key: typeof key === "string" ? Buffer.from(key) : (key ?? null),
    value,
    headers: Object.fromEntries(texts) as Record<string, string>,
  };
}

function nameOf({ topic, partition }: RdKafkaPartition): string {
  return `${topic}/${partition}`;
}

function bare({ topic, partition }: RdKafkaPartition): RdKafkaPartition {
  return { topic, partition };
}
