import { Kafka, logLevel } from "kafkajs";
import { createTopic } from "../../../../scripts/kafka/create-topic.mjs";
import { sharedBroker, whyNoKafka } from "../../../../scripts/kafka/provide.mjs";
import { ORDER_TOPIC } from "../adapters/out/events/outbox-events.ts";

export interface DevBroker {
  readonly brokers: string;
  stop(): Promise<void>;
}

const PARTITIONS = 12;

/**
 * The brokers of `KAFKA_BROKERS`, or else one of our own without a past, with the service's topic.
 * @throws Error saying why there can be none
 */
export const openDevBroker = async (): Promise<DevBroker> => {
  const why = whyNoKafka();
  if (why !== undefined) {
    throw new Error(`there is no Kafka for --kafka: ${why}`);
  }
  const { brokers, close } = await sharedBroker();
  try {
    await createOrderTopic(brokers);
  } catch (error) {
    await close();
    throw error;
  }
  return { brokers, stop: close };
};

const createOrderTopic = async (brokers: string): Promise<void> => {
  const admin = new Kafka({ brokers: brokers.split(","), logLevel: logLevel.NOTHING }).admin();
  await admin.connect();
  try {
    await createTopic(admin, { topic: ORDER_TOPIC, numPartitions: PARTITIONS });
  } finally {
    await admin.disconnect();
  }
};
