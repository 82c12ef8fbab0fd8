import type { KafkaJsAssigner, KafkaJsCluster } from "./structure.ts";

/** KafkaJS's own default, by its name, so that members with and without idemkit can be in one group. */
const name = "RoundRobinAssigner";
const version = 0;

/**
 * KafkaJS's round robin, with one thing more: a client asks each of its assigners for its protocol just before it sends
 * JoinGroup, and on no other occasion. That is the last moment at which the member still has its partitions, and the
 * only one that every way into a rebalance passes.
 */
export function tellingAssigner(
  joining: () => void,
): (config: { cluster: KafkaJsCluster }) => KafkaJsAssigner {
  return ({ cluster }) => ({
    name,
    version,
    assign: async ({ members, topics }) => {
      const ids = members.map(({ memberId }) => memberId).sort();
      const byMember = new Map<string, Map<string, number[]>>();
      const all = topics.flatMap((topic) =>
        cluster
          .findTopicPartitionMetadata(topic)
          .map(({ partitionId }) => ({ topic, partition: partitionId })),
      );
      for (const [at, { topic, partition }] of all.entries()) {
        const owned = entryOf(byMember, ids[at % ids.length] ?? "", () => new Map<string, number[]>());
        entryOf(owned, topic, () => []).push(partition);
      }
      return [...byMember].map(([memberId, owned]) => ({
        memberId,
        memberAssignment: encodeAssignment(owned),
      }));
    },
    protocol: ({ topics }) => {
      joining();
      return { name, metadata: encodeSubscription(topics) };
    },
  });
}

function entryOf<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const found = map.get(key);
  if (found !== undefined) return found;
  const made = make();
  map.set(key, made);
  return made;
}

/** ConsumerProtocolSubscription, version 0. */
function encodeSubscription(topics: readonly string[]): Buffer {
  return Buffer.concat([int16(version), int32(topics.length), ...topics.map(text), int32(0)]);
}

/** ConsumerProtocolAssignment, version 0. */
function encodeAssignment(owned: ReadonlyMap<string, readonly number[]>): Buffer {
  const topics = [...owned].map(([topic, partitions]) =>
    Buffer.concat([text(topic), int32(partitions.length), ...partitions.map(int32)]),
  );
  return Buffer.concat([int16(version), int32(owned.size), ...topics, int32(0)]);
}

function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(value);
  return bytes;
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([int16(bytes.length), bytes]);
}
