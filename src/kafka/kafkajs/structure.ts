/** The members of kafkajs 2 that idemkit calls: any object of this shape will do, so there is no dependency. */
export interface KafkaJs {
  producer(config: KafkaJsProducerConfig): KafkaJsProducer;
  consumer(config: KafkaJsConsumerConfig): KafkaJsConsumer;
  admin(): KafkaJsAdmin;
}

/** Settings of a producer. */
export interface KafkaJsProducerConfig {
  idempotent?: boolean;
  maxInFlightRequests?: number;
  allowAutoTopicCreation?: boolean;
  retry?: KafkaJsRetry;
  createPartitioner?: () => (args: { message: { partition?: number } }) => number;
}

/** Settings of a client's own retries. */
export interface KafkaJsRetry {
  retries?: number;
  initialRetryTime?: number;
  maxRetryTime?: number;
  restartOnFailure?: (error: Error) => Promise<boolean>;
}

/** A record on its way out. */
export interface KafkaJsMessage {
  key: Buffer;
  value: Buffer;
  partition: number;
  headers: Record<string, string>;
}

export interface KafkaJsProducer {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  sendBatch(batch: {
    acks: number;
    timeout: number;
    topicMessages: { topic: string; messages: KafkaJsMessage[] }[];
  }): Promise<unknown>;
}

export interface KafkaJsAdmin {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  fetchTopicMetadata(options: {
    topics: string[];
  }): Promise<{ topics: { name: string; partitions: readonly unknown[] }[] }>;
}

/** Settings of a consumer. */
export interface KafkaJsConsumerConfig {
  groupId: string;
  sessionTimeout?: number;
  rebalanceTimeout?: number;
  heartbeatInterval?: number;
  maxWaitTimeInMs?: number;
  allowAutoTopicCreation?: boolean;
  retry?: KafkaJsRetry;
  partitionAssigners?: ((config: { cluster: KafkaJsCluster }) => KafkaJsAssigner)[];
}

/** What an assigner may ask. */
export interface KafkaJsCluster {
  findTopicPartitionMetadata(topic: string): { partitionId: number }[];
}

export interface KafkaJsAssigner {
  name: string;
  version: number;
  assign(group: {
    members: { memberId: string }[];
    topics: string[];
  }): Promise<{ memberId: string; memberAssignment: Buffer }[]>;
  protocol(subscription: { topics: string[] }): { name: string; metadata: Buffer };
}

export interface KafkaJsConsumer {
  readonly events: Readonly<Record<"GROUP_JOIN" | "REBALANCING" | "CRASH" | "FETCH_START", string>>;
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  subscribe(subscription: { topics: string[]; fromBeginning: boolean }): Promise<void>;
  run(config: KafkaJsRunConfig): Promise<void>;
  pause(topics: { topic: string; partitions: number[] }[]): void;
  resume(topics: { topic: string; partitions: number[] }[]): void;
  on(event: string, listener: (event: { payload: unknown }) => void): () => void;
}

export interface KafkaJsRunConfig {
  autoCommit: boolean;
  eachBatchAutoResolve: boolean;
  partitionsConsumedConcurrently: number;
  eachBatch(payload: KafkaJsBatchPayload): Promise<void>;
}

/** What a batch comes with. */
export interface KafkaJsBatchPayload {
  batch: {
    topic: string;
    partition: number;
    messages: KafkaJsConsumedMessage[];
    lastOffset(): string;
  };
  resolveOffset(offset: string): void;
  commitOffsetsIfNecessary(offsets: KafkaJsOffsets): Promise<void>;
}

/** A record as it was read. */
export interface KafkaJsConsumedMessage {
  offset: string;
  key: Buffer | null;
  value: Buffer | null;
  headers?: Record<string, Buffer | string | (Buffer | string)[] | undefined>;
}

export interface KafkaJsOffsets {
  topics: { topic: string; partitions: { partition: number; offset: string }[] }[];
}
