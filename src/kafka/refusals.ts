/** What a refusal of the broker is about: all records of a topic, or one record. */
export type RefusalOf = "topic" | "record";

/**
 * The protocol's errors that no retry cures (Kafka protocol guide, error codes). Everything else is a failure: the same
 * records may be sent again. An unknown topic is decided by the publisher, since a new topic is unknown for a moment.
 */
const refusals: Readonly<Record<string, RefusalOf>> = {
  MESSAGE_TOO_LARGE: "record",
  RECORD_LIST_TOO_LARGE: "record",
  INVALID_RECORD: "record",
  INVALID_TIMESTAMP: "record",
  UNSUPPORTED_FOR_MESSAGE_FORMAT: "record",
  POLICY_VIOLATION: "record",
  INVALID_TOPIC_EXCEPTION: "topic",
  TOPIC_AUTHORIZATION_FAILED: "topic",
  CLUSTER_AUTHORIZATION_FAILED: "topic",
};

/** What the broker refused for good; `undefined` where a retry may help. */
export function refusalOf(protocolError: string | undefined): RefusalOf | undefined {
  return protocolError === undefined ? undefined : refusals[protocolError];
}

/** Whether the error says that there is no such topic. */
export function isUnknownTopic(protocolError: string | undefined): boolean {
  return protocolError === "UNKNOWN_TOPIC_OR_PARTITION" || protocolError === "UNKNOWN_TOPIC_ID";
}
