/** The part of `@confluentinc/kafka-javascript` that idemkit uses: the whole module will do. */
export interface ConfluentModule {
  readonly Producer: new (conf: never, topicConf: never) => object;
  readonly KafkaConsumer: new (conf: never, topicConf: never) => object;
}

/** Settings of librdkafka, by their names there. */
export type RdKafkaConf = Readonly<Record<string, unknown>>;

/** An error of librdkafka: positive codes are the protocol's, negative ones its own. */
export interface RdKafkaError extends Error {
  readonly code: number;
}

type Done<T = void> = (error: RdKafkaError | null | undefined, result?: T) => void;

/** What producers and consumers share. */
export interface RdKafkaClient {
  connect(options: { timeout?: number }, done: Done<unknown>): unknown;
  on(event: string, listener: (...args: never[]) => void): unknown;
  isConnected(): boolean;
}

export interface RdKafkaProducer extends RdKafkaClient {
  getMetadata(
    options: { topic: string; timeout: number },
    done: Done<{ topics: { name: string; partitions: readonly unknown[] }[] }>,
  ): unknown;
  setPollInterval(ms: number): unknown;
  poll(): unknown;
  produce(
    topic: string,
    partition: number,
    value: Buffer,
    key: Buffer,
    timestamp: number,
    opaque: unknown,
    headers: Record<string, string>[],
  ): unknown;
  disconnect(timeoutMs: number, done: Done): unknown;
}

/** A partition as librdkafka names it. */
export interface RdKafkaPartition {
  readonly topic: string;
  readonly partition: number;
}

export interface RdKafkaConsumer extends RdKafkaClient {
  subscribe(topics: readonly string[]): unknown;
  unsubscribe(): unknown;
  setDefaultConsumeTimeout(ms: number): void;
  setDefaultIsTimeoutOnlyForFirstMessage(only: boolean): void;
  consume(number: number, done: Done<RdKafkaMessage[]>): void;
  rebalanceProtocol(): string;
  assignmentLost(): boolean;
  assign(partitions: readonly RdKafkaPartition[]): unknown;
  unassign(): unknown;
  incrementalAssign(partitions: readonly RdKafkaPartition[]): unknown;
  incrementalUnassign(partitions: readonly RdKafkaPartition[]): unknown;
  pause(partitions: readonly RdKafkaPartition[]): unknown;
  resume(partitions: readonly RdKafkaPartition[]): unknown;
  commitCb(offsets: readonly (RdKafkaPartition & { readonly offset: number })[], done: Done): unknown;
  disconnect(done: Done): unknown;
}

/** A record as it was read. */
export interface RdKafkaMessage extends RdKafkaPartition {
  readonly offset: number;
  readonly key: Buffer | string | null | undefined;
  readonly value: Buffer | null;
  readonly headers?: readonly Readonly<Record<string, Buffer | string>>[] | undefined;
}
