import { Kafka, logLevel } from "kafkajs";
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
    await createTopic(brokers);
  } catch (error) {
    await close();
    throw error;
  }
  return { brokers, stop: close };
};

/** Does nothing where the topic is there. */
const createTopic = async (brokers: string): Promise<void> => {
  const admin = new Kafka({ brokers: brokers.split(","), logLevel: logLevel.NOTHING }).admin();
  await admin.connect();
  try {
    const topics = [{ topic: ORDER_TOPIC, numPartitions: PARTITIONS }];
    await admin.createTopics({ topics, waitForLeaders: true });
  } finally {
    await admin.disconnect();
  }
};
