import type { PartitionOffset } from "../port.ts";
import type { PlatformaticConsumer, PlatformaticModule } from "./structure.ts";

/** A membership: what the broker tells commits of past members by. */
export interface Membership {
  readonly groupId: string;
  readonly generationId: number;
  readonly memberId: string | null;
}

type Callback<T> = (error: Error | null, result?: T) => void;

/** OffsetCommit of the version that client and broker agree on. */
type OffsetCommit = (
  ...request: readonly [
    connection: unknown,
    groupId: string,
    generationId: number,
    memberId: string | null,
    groupInstanceId: null,
    topics: CommitTopic[],
    callback: Callback<unknown>,
  ]
) => void;

interface CommitTopic {
  name: string;
  partitions: {
    partitionIndex: number;
    committedOffset: bigint;
    committedLeaderEpoch: number;
    committedMetadata: null;
  }[];
}

/**
 * Commits under the given membership. `consumer.commit` would not do: it reads the generation late, and where the group
 * has moved on it joins again and commits the same offsets as a new member, whoever owns the partition by then.
 */
export async function commitAs(
  { kGetApi, kGetConnection }: PlatformaticModule,
  consumer: PlatformaticConsumer,
  { groupId, generationId, memberId }: Membership,
  offsets: readonly PartitionOffset[],
): Promise<void> {
  const members = consumer as unknown as Record<symbol, (...args: readonly unknown[]) => void>;
  const coordinator = await consumer.findGroupCoordinator();
  const { brokers } = await consumer.metadata({ topics: [] });
  const connection = await called<unknown>((done) =>
    members[kGetConnection]?.(brokers.get(coordinator), done),
  );
  const api = await called<OffsetCommit>((done) => members[kGetApi]?.("OffsetCommit", done));
  const topics = offsets.map(({ topic, partition, offset }) => ({
    name: topic,
    partitions: [
      {
        partitionIndex: partition,
        committedOffset: offset,
        committedLeaderEpoch: -1,
        committedMetadata: null,
      },
    ],
  }));
  await called<unknown>((done) => api(connection, groupId, generationId, memberId, null, topics, done));
}

function called<T>(work: (done: Callback<T>) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    work((error, result) => {
      if (error) reject(error);
      else resolve(result as T);
    });
  });
}
