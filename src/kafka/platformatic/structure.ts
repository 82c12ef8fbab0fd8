/** The part of the package `@platformatic/kafka` that idemkit uses: the whole module will do. */
export interface PlatformaticModule {
  readonly Producer: new (options: never) => object;
  readonly Consumer: new (options: never) => object;
  /** Keys of a client's members; see `commit.ts`. */
  readonly kGetApi: symbol;
  readonly kGetConnection: symbol;
}

/** A record on its way out. */
export interface PlatformaticMessage {
  readonly topic: string;
  readonly partition: number;
  readonly key: Buffer;
  readonly value: Buffer;
  readonly headers: Map<Buffer, Buffer>;
}

/** What producers and consumers share. */
export interface PlatformaticClient {
  on(event: string, listener: (payload: unknown) => void): unknown;
  metadata(options: { topics: string[] }): Promise<PlatformaticMetadata>;
  clearMetadata(): void;
  close(force?: boolean): Promise<void>;
}

/** A cluster's metadata. */
export interface PlatformaticMetadata {
  readonly brokers: ReadonlyMap<number, unknown>;
  readonly topics: ReadonlyMap<
    string,
    {
      readonly id: string;
      readonly partitionsCount: number;
      readonly partitions: Readonly<Record<number, { leader: number }>>;
    }
  >;
}

export interface PlatformaticProducer extends PlatformaticClient {
  send(options: { messages: PlatformaticMessage[]; acks: number }): Promise<unknown>;
}

export interface PlatformaticConsumer extends PlatformaticClient {
  readonly generationId: number;
  readonly memberId: string | null;
  readonly topics: { trackAll(...topics: string[]): unknown };
  joinGroup(options: Record<string, never>): Promise<unknown>;
  findGroupCoordinator(): Promise<number>;
  fetch(options: PlatformaticFetch): Promise<PlatformaticFetched>;
  /** Arrays indexed by partition. */
  listOffsets(options: {
    topics: string[];
    partitions: Record<string, number[]>;
    timestamp: bigint;
  }): Promise<Map<string, bigint[]>>;
  listCommittedOffsets(options: {
    topics: { topic: string; partitions: number[] }[];
  }): Promise<Map<string, (bigint | undefined)[]>>;
}

/** A fetch from one broker. */
export interface PlatformaticFetch {
  readonly node: number;
  readonly maxWaitTime: number;
  readonly topics: {
    readonly topicId: string;
    readonly partitions: {
      readonly partition: number;
      readonly fetchOffset: bigint;
      readonly partitionMaxBytes: number;
      readonly currentLeaderEpoch: number;
      readonly lastFetchedEpoch: number;
    }[];
  }[];
}

/** What came of it. */
export interface PlatformaticFetched {
  readonly responses: {
    readonly topicId: string;
    readonly partitions: {
      readonly partitionIndex: number;
      readonly records?: PlatformaticBatch[] | undefined;
    }[];
  }[];
}

/** A batch of records as it lies in the log. */
export interface PlatformaticBatch {
  readonly firstOffset: bigint;
  readonly lastOffsetDelta: number;
  readonly attributes: number;
  readonly records: {
    readonly offsetDelta: number;
    readonly key: Buffer | null;
    readonly value: Buffer | null;
    readonly headers: [Buffer | null, Buffer | null][];
  }[];
}
