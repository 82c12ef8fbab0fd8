import type { RdKafkaError } from "./structure.ts";

/** Codes of the protocol, and librdkafka's own (negative) for what it finds out before it asks the broker. */
const names: Readonly<Record<number, string>> = {
  [-190]: "UNKNOWN_TOPIC_OR_PARTITION",
  [-188]: "UNKNOWN_TOPIC_OR_PARTITION",
  1: "OFFSET_OUT_OF_RANGE",
  3: "UNKNOWN_TOPIC_OR_PARTITION",
  10: "MESSAGE_TOO_LARGE",
  16: "NOT_COORDINATOR",
  17: "INVALID_TOPIC_EXCEPTION",
  18: "RECORD_LIST_TOO_LARGE",
  22: "ILLEGAL_GENERATION",
  25: "UNKNOWN_MEMBER_ID",
  27: "REBALANCE_IN_PROGRESS",
  29: "TOPIC_AUTHORIZATION_FAILED",
  31: "CLUSTER_AUTHORIZATION_FAILED",
  32: "INVALID_TIMESTAMP",
  43: "UNSUPPORTED_FOR_MESSAGE_FORMAT",
  44: "POLICY_VIOLATION",
  87: "INVALID_RECORD",
};

/** The name of the protocol's error inside librdkafka's. */
export function protocolErrorOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error)) return undefined;
  return names[(error as RdKafkaError).code];
}

/** An error of librdkafka's kind, for what its answers only imply. */
export function unknownTopic(topic: string): Error {
  return Object.assign(new Error(`there is no topic ${topic}`), { code: 3 });
}
