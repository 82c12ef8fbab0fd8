/**
 * What idemkit needs of a Kafka client: a seam, kept small so that every client fits behind it. A binding is a function
 * that returns a {@link KafkaClient} (`fromKafkaJs`, `fromPlatformatic`, `fromConfluent`). Where clients differ, the
 * difference is a documented flag in {@link KafkaCapabilities}, never a check of which client it is.
 */
export interface KafkaClient {
  /** The client's package, for messages. */
  readonly name: string;
  readonly capabilities: KafkaCapabilities;
  /**
   * Connects a producer that waits for all in-sync replicas and is idempotent; a binding has no other kind.
   * @throws whatever the client throws when no broker can be reached.
   */
  connectProducer(settings: ProducerSettings): Promise<KafkaProducer>;
  /**
   * Joins a consumer group and stays in it: after a crash of the client or an outage of the brokers it joins again by
   * itself. What happens is told to the listener.
   */
  joinGroup(settings: GroupSettings, listener: GroupListener): GroupMember;
  /** The name of the Kafka protocol's error inside what the client threw, such as `MESSAGE_TOO_LARGE`, where it has one. */
  protocolErrorOf(error: unknown): string | undefined;
}

/** What a client can do beyond the port. */
export interface KafkaCapabilities {
  /**
   * The client holds a rebalance back until `revoked` has resolved: work in flight may finish and its offsets be
   * committed before another member gets the partition. Elsewhere the work is aborted at once, and what it had
   * committed to the database is found to be a duplicate by the next owner.
   */
  readonly awaitsRevocation: boolean;
  /** Partitions that stay with a member are not revoked by a rebalance (cooperative protocol). */
  readonly keepsPartitions: boolean;
}

/** Settings of a producer. */
export interface ProducerSettings {
  /** How long one send may take, retries included. */
  readonly sendTimeoutMs: number;
}

/** Records of one partition, in order. */
export interface PartitionRecords {
  readonly topic: string;
  readonly partition: number;
  readonly records: readonly ProducedRecord[];
}

/** A record on its way out. */
export interface ProducedRecord {
  readonly key: string;
  readonly value: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
}

/** One idempotent pipeline. After an error nobody can tell its sequence numbers any more: it is closed, and a new one made. */
export interface KafkaProducer {
  /** @throws the client's error, `UNKNOWN_TOPIC_OR_PARTITION` where there is no such topic. */
  partitionCount(topic: string): Promise<number>;
  /** Resolves when all in-sync replicas have every record. Called again only after the last call has settled. */
  send(batches: readonly PartitionRecords[]): Promise<void>;
  /** Gives everything up at once; never throws. */
  close(): Promise<void>;
}

/** A partition of a topic. */
export interface TopicPartition {
  readonly topic: string;
  readonly partition: number;
}

/** The offset that is to be read next, as it is committed. */
export interface PartitionOffset extends TopicPartition {
  readonly offset: bigint;
}

/** A record as it was read. */
export interface ConsumedRecord {
  readonly offset: bigint;
  readonly key: Uint8Array | null;
  readonly value: Uint8Array | null;
  readonly headers: Readonly<Record<string, string>>;
}

/** Settings of a member of a consumer group. */
export interface GroupSettings {
  readonly groupId: string;
  readonly topics: readonly string[];
  /** Where a partition without a committed offset is read from. */
  readonly startAt: "earliest" | "latest";
  readonly sessionTimeoutMs: number;
  readonly heartbeatMs: number;
  /** How long the group waits for its members at a rebalance. */
  readonly rebalanceTimeoutMs: number;
  /** How long a fetch waits for records: also how soon a pause or a rebalance is noticed. */
  readonly maxWaitMs: number;
}

/** What a binding tells. */
export interface GroupListener {
  /** The member owns these now, beside those that were not revoked. */
  assigned(partitions: readonly TopicPartition[]): void;
  /**
   * The member loses these. Called before anything that ends the ownership is sent, where the client knows of it;
   * awaited where {@link KafkaCapabilities.awaitsRevocation}. With `lost` they belong to someone else already.
   */
  revoked(partitions: readonly TopicPartition[], lost: boolean): Promise<void>;
  /** Records of an assigned partition, in order. They are never given twice in one ownership. */
  records(from: TopicPartition, records: readonly ConsumedRecord[]): void;
  /** Something failed, and the binding tries again. */
  failed(error: unknown): void;
}

/** A member of a group. */
export interface GroupMember {
  /** No more records of these until they are resumed or assigned anew. Neither of the two throws. */
  pause(partitions: readonly TopicPartition[]): void;
  resume(partitions: readonly TopicPartition[]): void;
  /**
   * Sent under the membership of the moment of the call, and never under a later one: the broker refuses it where that
   * is over. The caller leaves out revoked partitions.
   */
  commit(offsets: readonly PartitionOffset[]): Promise<void>;
  /** Leaves the group; partitions still owned are revoked before. Never throws. */
  leave(): Promise<void>;
}
