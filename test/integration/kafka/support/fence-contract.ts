import { kafkaPublisher } from "idemkit/kafka";
import type { GroupMember, KafkaClient, TopicPartition } from "idemkit/kafka";
import { afterEach, describe, expect, test } from "vitest";

import { until } from "../../../support/index.ts";
import { createTopic, kafkaAvailable } from "../../../support/kafka.ts";
import type { TestTopic } from "../../../support/kafka.ts";
import type { Binding } from "./clients.ts";
import { eventOf } from "./events.ts";

interface Joined {
  readonly member: GroupMember;
  readonly owned: () => readonly TopicPartition[];
  /** Partitions that something was read from. */
  readonly seen: ReadonlySet<number>;
}

/** A topic with something in each partition, since an offset to commit comes from a record. */
async function filledTopic(binding: Binding): Promise<TestTopic> {
  const topic = await createTopic({ partitions: 2 });
  await using publisher = kafkaPublisher(binding.connect());
  await publisher.publish(Array.from({ length: 20 }, (_, at) => eventOf(topic.name, `order-${at}`, at)));
  return topic;
}

const members: GroupMember[] = [];

function join(
  client: KafkaClient,
  topic: string,
  onRevoked?: (member: GroupMember) => Promise<void>,
): Joined {
  let owned: TopicPartition[] = [];
  const seen = new Set<number>();
  const settings = {
    groupId: `group-of-${topic}`,
    topics: [topic],
    startAt: "earliest" as const,
    sessionTimeoutMs: 6000,
    heartbeatMs: 300,
    rebalanceTimeoutMs: 20_000,
    maxWaitMs: 100,
  };
  const member: GroupMember = client.joinGroup(settings, {
    assigned: (partitions) => void (owned = [...owned, ...partitions]),
    revoked: async (partitions) => {
      const ended = onRevoked?.(member);
      owned = owned.filter((mine) => !partitions.some(({ partition }) => partition === mine.partition));
      await ended;
    },
    records: ({ partition }) => void seen.add(partition),
    failed: () => {},
  });
  members.push(member);
  return { member, owned: () => owned, seen };
}

/** What every binding must do about commits. */
export function describeFence(binding: Binding): void {
  describe.skipIf(!kafkaAvailable() || binding.installed === false)(`commits on ${binding.name}`, () => {
    afterEach(async () => {
      await Promise.all(members.splice(0).map((member) => member.leave()));
    });

    test("get through while the partition is owned, also inside the revocation", async () => {
      const topic = await filledTopic(binding);
      let last: Promise<void> | undefined;
      const first = join(binding.connect(), topic.name, (member) => {
        last ??= member.commit([{ topic: topic.name, partition: 0, offset: 7n }]);
        return last.catch(() => {});
      });
      await until(() => first.seen.size === 2, { timeoutMs: 20_000, what: "both partitions" });
      await first.member.commit([{ topic: topic.name, partition: 1, offset: 5n }]);
      expect((await topic.committed(`group-of-${topic.name}`))[1]).toBe(5);
      await first.member.leave();
      await last;
      expect((await topic.committed(`group-of-${topic.name}`))[0]).toBe(7);
    });

    test("of a membership that is over are not sent under the next one", async () => {
      const topic = await filledTopic(binding);
      const group = `group-of-${topic.name}`;
      const first = join(binding.connect(), topic.name);
      await until(() => first.seen.size === 2, { timeoutMs: 20_000, what: "both partitions" });
      const second = join(binding.connect(), topic.name);
      await until(() => second.owned().length === 1 && second.seen.size > 0, {
        timeoutMs: 20_000,
        what: "one for each",
      });
      const [lost] = second.owned();
      const at = lost?.partition ?? 0;
      await second.member.commit([{ topic: topic.name, partition: at, offset: 100n }]);
      await first.member.leave();
      // What comes after the end is either refused or not sent.
      await first.member.commit([{ topic: topic.name, partition: at, offset: 3n }]).catch(() => {});
      expect((await topic.committed(group))[at]).toBe(100);
    });
  });
}
