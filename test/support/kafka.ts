import { randomUUID } from "node:crypto";

import { Kafka, logLevel } from "kafkajs";
import type { Admin } from "kafkajs";
import { inject } from "vitest";

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
  /** The committed offsets of a group by partition; -1 where there is none. */
  committed(groupId: string): Promise<readonly number[]>;
  /** The offsets behind the last record by partition. */
  ends(): Promise<readonly number[]>;
  /** Waits until the group has committed everything. */
  drained(groupId: string, options?: { timeoutMs?: number }): Promise<void>;
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

/** A topic of the test's own. */
export async function createTopic(
  options: { partitions?: number; brokers?: string; name?: string; config?: Record<string, string> } = {},
): Promise<TestTopic> {
  const { partitions = 3, brokers = kafkaBrokers(), name = `t-${randomUUID().slice(0, 8)}`, config = {} } = options;
  const configEntries = Object.entries(config).map(([key, value]) => ({ name: key, value }));
  await withAdmin(brokers, (admin) =>
    admin.createTopics({ topics: [{ topic: name, numPartitions: partitions, configEntries }], waitForLeaders: true }),
  );
  const committed = (groupId: string): Promise<readonly number[]> =>
    withAdmin(brokers, async (admin) => {
      const [found] = await admin.fetchOffsets({ groupId, topics: [name] });
      return byPartition(found?.partitions ?? []);
    });
  const ends = (): Promise<readonly number[]> =>
    withAdmin(brokers, async (admin) => byPartition(await admin.fetchTopicOffsets(name)));
  return {
    name,
    committed,
    ends,
    drained: async (groupId, { timeoutMs = 20_000 } = {}) => {
      const wanted = await ends();
      await until(
        async () => {
          const got = await committed(groupId);
          return wanted.every((end, partition) => end === 0 || got[partition] === end);
        },
        { timeoutMs, pollMs: 100, what: `group ${groupId} at ${wanted.join(",")}` },
      );
    },
  };
}
