import { IdemkitError } from "../../errors.ts";
import { checkNames } from "../../internal/options.ts";
import type { KafkaClient } from "../port.ts";
import { joinGroup } from "./group.ts";
import { connectProducer } from "./producer.ts";
import type { KafkaJs } from "./structure.ts";

/** Settings of {@link fromKafkaJs}; everything about brokers and credentials is in the `Kafka` object. */
export interface KafkaJsOptions {
  /** Further settings of the producer, such as `metadataMaxAge`. */
  readonly producer?: Readonly<Record<string, unknown>>;
  /** Further settings of the consumer, such as `maxBytes` or `rackId`. */
  readonly consumer?: Readonly<Record<string, unknown>>;
}

/**
 * idemkit over KafkaJS 2.
 *
 * Its rebalance can't be held back (`awaitsRevocation: false`) and revokes every partition (`keepsPartitions: false`).
 * @param kafka - `new Kafka({ brokers, … })` of `kafkajs`
 * @throws IdemkitError `kafka_producer_unsafe`, `kafka_auto_commit`, `option_invalid`.
 */
export function fromKafkaJs(kafka: KafkaJs, options: KafkaJsOptions = {}): KafkaClient {
  checkNames("fromKafkaJs", options, ["producer", "consumer"]);
  const { producer = {}, consumer = {} } = options;
  requireSafe(producer);
  requireManualCommit(consumer);
  return {
    name: "kafkajs",
    capabilities: { awaitsRevocation: false, keepsPartitions: false },
    connectProducer: (settings) => connectProducer(kafka, producer, settings),
    joinGroup: (settings, listener) => joinGroup(kafka, consumer, settings, listener),
    protocolErrorOf,
  };
}

/** What the publisher's guarantee rests on must not be given otherwise. */
function requireSafe(producer: Readonly<Record<string, unknown>>): void {
  const { acks = -1, idempotent = true, maxInFlightRequests = 1 } = producer;
  const fault =
    acks === -1 && idempotent === true && maxInFlightRequests === 1
      ? undefined
      : "acks, idempotent or maxInFlightRequests";
  const given = fault ?? ["createPartitioner", "transactionalId"].find((name) => name in producer);
  if (given !== undefined) {
    throw new IdemkitError("kafka_producer_unsafe", { detail: `fromKafkaJs.producer: ${given}` });
  }
}

function requireManualCommit(consumer: Readonly<Record<string, unknown>>): void {
  const given = Object.keys(consumer).find(
    (name) => name.startsWith("autoCommit") && consumer[name] !== false,
  );
  if (given !== undefined) {
    throw new IdemkitError("kafka_auto_commit", { detail: `fromKafkaJs.consumer.${given}` });
  }
}

/** KafkaJS names older errors by their older names. */
const newNames: Readonly<Record<string, string>> = {
  NOT_LEADER_FOR_PARTITION: "NOT_LEADER_OR_FOLLOWER",
  NOT_COORDINATOR_FOR_GROUP: "NOT_COORDINATOR",
};

function protocolErrorOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if ("type" in error && typeof error.type === "string") return newNames[error.type] ?? error.type;
  return "cause" in error ? protocolErrorOf(error.cause) : undefined;
}
