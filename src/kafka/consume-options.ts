import { IdemkitError } from "../errors.ts";
import type { EventOutcome } from "../inbox/outcome.ts";
import { inboxSettingNames } from "../inbox/settings.ts";
import type { InboxOptions } from "../inbox/settings.ts";
import { checkInteger, checkNames, invalid } from "../internal/options.ts";
import { attempt } from "./attempt.ts";
import type { HeaderStyle } from "./event-headers.ts";
import type { KafkaClient, PartitionOffset, TopicPartition } from "./port.ts";

/** Settings of {@link consume}: those of the inbox, and Kafka's. */
export interface ConsumeOptions<Tx> extends InboxOptions<Tx> {
  readonly client: KafkaClient;
  readonly topics: readonly string[];
  /** Members of one group share the partitions. @defaultValue the consumer's name */
  readonly groupId?: string;
  /** Where a partition without a committed offset begins. @defaultValue "earliest": nothing is missed */
  readonly startAt?: "earliest" | "latest";
  /**
   * Batches in work at the same time, over all partitions; each takes a connection. Two of one partition never share a
   * key.
   * @defaultValue 4
   */
  readonly concurrency?: number;
  /** Events of one transaction. @defaultValue 100 */
  readonly batchSize?: number;
  /**
   * Records of one partition that may lie behind one that isn't done yet; then the partition is paused. A poison message
   * holds its key's followers and the offset, and no other key until this many came after it.
   * @defaultValue 2_000
   */
  readonly maxUncommitted?: number;
  /** Pause between two commits of offsets: what a crash can redeliver, as duplicates. @defaultValue 200 */
  readonly commitEveryMs?: number;
  /** After this long without a heartbeat the group takes a member for dead. @defaultValue 30_000 */
  readonly sessionTimeoutMs?: number;
  /** @defaultValue 3_000 */
  readonly heartbeatMs?: number;
  /** How long a rebalance waits for its members. @defaultValue 60_000 */
  readonly rebalanceTimeoutMs?: number;
  /** How long a fetch waits for records; also how soon a pause or a rebalance is noticed. @defaultValue 500 */
  readonly maxWaitMs?: number;
  /** How long work in flight may go on after a revocation, where the client can wait for it. @defaultValue 5_000 */
  readonly revokeGraceMs?: number;
  /** How long work in flight may go on after `stop()`; then its signal aborts. @defaultValue 10_000 */
  readonly stopGraceMs?: number;
  /** How events are named in the headers. @defaultValue "idemkit" */
  readonly headers?: HeaderStyle;
  /** @defaultValue `console` */
  readonly logger?: ConsumeLogger;
  readonly observe?: ConsumeObserver;
}

/** Where a consumer reports to; `console` fits. */
export interface ConsumeLogger {
  info(message: string): void;
  error(message: string): void;
}

/** Told of what happens, for metrics and tests. What these throw is lost. */
export interface ConsumeObserver {
  readonly assigned?: (partitions: readonly TopicPartition[]) => void;
  readonly revoked?: (partitions: readonly TopicPartition[], lost: boolean) => void;
  readonly outcome?: (outcome: EventOutcome, record: PartitionOffset) => void;
  readonly committed?: (offsets: readonly PartitionOffset[]) => void;
  /** The database is away: all partitions are paused. */
  readonly paused?: (error: unknown) => void;
  /** It is back. */
  readonly resumed?: () => void;
}

/** The settings with their defaults. */
export interface ConsumeSettings {
  readonly topics: readonly string[];
  readonly groupId: string;
  readonly startAt: "earliest" | "latest";
  readonly concurrency: number;
  readonly batchSize: number;
  readonly maxUncommitted: number;
  readonly commitEveryMs: number;
  readonly sessionTimeoutMs: number;
  readonly heartbeatMs: number;
  readonly rebalanceTimeoutMs: number;
  readonly maxWaitMs: number;
  readonly revokeGraceMs: number;
  readonly stopGraceMs: number;
  readonly headers: HeaderStyle;
  readonly logger: ConsumeLogger;
  readonly observe: ConsumeObserver;
}

const ownNames = [
  "database",
  "client",
  "topics",
  "groupId",
  "startAt",
  "concurrency",
  "batchSize",
  "maxUncommitted",
  "commitEveryMs",
  "sessionTimeoutMs",
  "heartbeatMs",
  "rebalanceTimeoutMs",
  "maxWaitMs",
  "revokeGraceMs",
  "stopGraceMs",
  "headers",
  "logger",
  "observe",
] as const;

/**
 * Checks the options and resolves their defaults.
 * @throws IdemkitError `option_invalid`, `kafka_auto_commit`.
 */
export function consumeSettings<Tx>(options: ConsumeOptions<Tx>): ConsumeSettings {
  // Said in so many words: it would commit what the database does not have yet.
  const auto = Object.keys(options).find((name) => /^(?:enable)?auto[-_.]?commit/i.test(name));
  if (auto !== undefined) throw new IdemkitError("kafka_auto_commit", { detail: `consume.${auto}` });
  checkNames("consume", options, [...ownNames, ...inboxSettingNames]);
  const { topics, startAt = "earliest", headers = "idemkit", logger = console, observe = {} } = options;
  if (!Array.isArray(topics) || topics.length === 0) throw invalid("topics", "must name at least one topic");
  if (startAt !== "earliest" && startAt !== "latest") {
    throw invalid("startAt", 'must be "earliest" or "latest"');
  }
  const numbers = numbersOf(options);
  if (numbers.heartbeatMs * 2 > numbers.sessionTimeoutMs) {
    throw invalid("heartbeatMs", "must fit into sessionTimeoutMs twice");
  }
  if (numbers.rebalanceTimeoutMs < numbers.sessionTimeoutMs) {
    throw invalid("rebalanceTimeoutMs", "must not be below sessionTimeoutMs");
  }
  return {
    topics,
    groupId: options.groupId ?? options.consumer,
    startAt,
    headers,
    logger,
    observe: harmless(observe),
    ...numbers,
  };
}

/** An observer that throws must not stop what it watches. */
function harmless(observe: ConsumeObserver): ConsumeObserver {
  const guarded = Object.entries(observe).map(([name, tell]) => [
    name,
    (...told: readonly unknown[]): void =>
      attempt(() => (tell as (...args: readonly unknown[]) => void)(...told)),
  ]);
  return Object.fromEntries(guarded) as ConsumeObserver;
}

function numbersOf<Tx>(
  options: ConsumeOptions<Tx>,
): Pick<
  ConsumeSettings,
  | "concurrency"
  | "batchSize"
  | "maxUncommitted"
  | "commitEveryMs"
  | "sessionTimeoutMs"
  | "heartbeatMs"
  | "rebalanceTimeoutMs"
  | "maxWaitMs"
  | "revokeGraceMs"
  | "stopGraceMs"
> {
  return {
    concurrency: checkInteger("concurrency", options.concurrency ?? 4, 1, 1000),
    batchSize: checkInteger("batchSize", options.batchSize ?? 100, 1, 10_000),
    maxUncommitted: checkInteger("maxUncommitted", options.maxUncommitted ?? 2000, 1, 1_000_000),
    commitEveryMs: checkInteger("commitEveryMs", options.commitEveryMs ?? 200, 0, 60_000),
    sessionTimeoutMs: checkInteger("sessionTimeoutMs", options.sessionTimeoutMs ?? 30_000, 1000, 1_800_000),
    heartbeatMs: checkInteger("heartbeatMs", options.heartbeatMs ?? 3000, 100, 600_000),
    rebalanceTimeoutMs: checkInteger(
      "rebalanceTimeoutMs",
      options.rebalanceTimeoutMs ?? 60_000,
      1000,
      3_600_000,
    ),
    maxWaitMs: checkInteger("maxWaitMs", options.maxWaitMs ?? 500, 1, 60_000),
    revokeGraceMs: checkInteger("revokeGraceMs", options.revokeGraceMs ?? 5000, 0, 600_000),
    stopGraceMs: checkInteger("stopGraceMs", options.stopGraceMs ?? 10_000, 0, 600_000),
  };
}
