import { randomUUID } from "node:crypto";

import { Kafka, logLevel } from "kafkajs";
import type { Admin } from "kafkajs";
import { inject } from "vitest";

import { createTopic as createLedTopic } from "../../scripts/kafka/create-topic.mjs";
import { until } from "./until.ts";

/** Whether there is a broker: tests that need one are skipped elsewhere, and the run says so. */
export function kafkaAvailable(): boolean {
  return inject("kafkaBrokers") !== "";
}

/** `host:port` of the broker that all files share. */
export function kafkaBrokers(): string {
  return inject("kafkaBrokers");
}

/** A KafkaJS client for the test's own use. */
export function kafkaJs(brokers: string = kafkaBrokers()): Kafka {
  return new Kafka({ clientId: "idemkit-test", brokers: brokers.split(","), logLevel: logLevel.NOTHING });
}

export interface TestTopic {
  readonly name: string;
  /** The group of a consumer here: tests share the broker, and must not meet in a group. */
  groupOf(consumer: string): string;
  /** The committed offsets of a group by partition; -1 where there is none. */
  committed(groupId: string): Promise<readonly number[]>;
  /** The offsets behind the last record by partition. */
  ends(): Promise<readonly number[]>;
  /** Waits until the consumer's group has committed everything. */
  drained(consumer: string, options?: { timeoutMs?: number }): Promise<void>;
}

async function withAdmin<T>(brokers: string, work: (admin: Admin) => Promise<T>): Promise<T> {
  const admin = kafkaJs(brokers).admin();
  await admin.connect();
  try {
    return await work(admin);
  } finally {
    await admin.disconnect();
  }
}

function byPartition(offsets: readonly { partition: number; offset: string }[]): number[] {
  return [...offsets].sort((a, b) => a.partition - b.partition).map(({ offset }) => Number(offset));
}

/** See {@link TestTopic.groupOf}. */
export function groupName(consumer: string, topic: string): string {
  return `${consumer}.${topic}`;
}

/** A topic of the test's own. */
export async function createTopic(
  options: { partitions?: number; brokers?: string; name?: string; config?: Record<string, string> } = {},
): Promise<TestTopic> {
  const {
    partitions = 3,
    brokers = kafkaBrokers(),
    name = `t-${randomUUID().slice(0, 8)}`,
    config = {},
  } = options;
  const configEntries = Object.entries(config).map(([key, value]) => ({ name: key, value }));
  await withAdmin(brokers, (admin) =>
    createLedTopic(admin, { topic: name, numPartitions: partitions, configEntries }),
  );
  const committed = (groupId: string): Promise<readonly number[]> =>
    withAdmin(brokers, async (admin) => {
      const [found] = await admin.fetchOffsets({ groupId, topics: [name] });
      return byPartition(found?.partitions ?? []);
    });
  const ends = (): Promise<readonly number[]> =>
    withAdmin(brokers, async (admin) => byPartition(await admin.fetchTopicOffsets(name)));
  const groupOf = (consumer: string): string => groupName(consumer, name);
  return {
    name,
    groupOf,
    committed,
    ends,
    drained: async (consumer, { timeoutMs = 20_000 } = {}) => {
      await until(
        async () => {
          try {
            const [wanted, got] = await Promise.all([ends(), committed(groupOf(consumer))]);
            return wanted.every((end, partition) => end === 0 || got[partition] === end);
          } catch {
            // A broker that was just started may not lead its partitions yet.
            return false;
          }
        },
        { timeoutMs, pollMs: 100, what: `${consumer} at the end of ${name}` },
      );
    },
  };
}

export interface TopicRecord {
  readonly partition: number;
  readonly offset: number;
  readonly key: string;
  readonly value: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Reads a topic from its beginning until `count` records are there; within a partition in order. */
export async function readTopic(topic: TestTopic, count: number, brokers?: string): Promise<TopicRecord[]> {
  const consumer = kafkaJs(brokers).consumer({ groupId: `reader-${randomUUID()}`, maxWaitTimeInMs: 100 });
  const records: TopicRecord[] = [];
  await consumer.connect();
  try {
    await consumer.subscribe({ topics: [topic.name], fromBeginning: true });
    await consumer.run({
      autoCommit: false,
      eachMessage: async ({ partition, message }) => {
        const headers = Object.entries(message.headers ?? {}).map(([name, text]) => [name, String(text)]);
        records.push({
          partition,
          offset: Number(message.offset),
          key: message.key?.toString() ?? "",
          value: message.value?.toString() ?? "",
          headers: Object.fromEntries(headers) as Record<string, string>,
        });
      },
    });
    await until(() => records.length >= count, {
      timeoutMs: 20_000,
      what: `${count} records in ${topic.name}`,
    });
  } finally {
    await consumer.disconnect();
  }
  return records.sort((a, b) => a.offset - b.offset);
}
