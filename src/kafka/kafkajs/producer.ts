import type { KafkaProducer, PartitionRecords, ProducerSettings } from "../port.ts";
import type { KafkaJs, KafkaJsMessage, KafkaJsRetry } from "./structure.ts";

/**
 * The client's own retries, of the same request and so of the same sequence numbers: enough for a broker's restart, and
 * bounded, since a send that never gives up would go on behind the back of its caller.
 */
function retriesWithin(sendTimeoutMs: number): KafkaJsRetry {
  const maxRetryTime = 2000;
  return {
    retries: Math.max(1, Math.ceil(sendTimeoutMs / maxRetryTime)),
    initialRetryTime: 100,
    maxRetryTime,
  };
}

/** An idempotent producer of KafkaJS, one request in flight, acks from all in-sync replicas. */
export async function connectProducer(
  kafka: KafkaJs,
  further: Readonly<Record<string, unknown>>,
  { sendTimeoutMs }: ProducerSettings,
): Promise<KafkaProducer> {
  const producer = kafka.producer({
    allowAutoTopicCreation: false,
    ...further,
    idempotent: true,
    maxInFlightRequests: 1,
    retry: retriesWithin(sendTimeoutMs),
    createPartitioner:
      () =>
      ({ message }) =>
        message.partition ?? 0,
  });
  const admin = kafka.admin();
  const close = async (): Promise<void> => {
    await Promise.allSettled([producer.disconnect(), admin.disconnect()]);
  };
  try {
    await Promise.all([producer.connect(), admin.connect()]);
  } catch (error) {
    await close();
    throw error;
  }
  return {
    partitionCount: async (topic) => {
      const { topics } = await admin.fetchTopicMetadata({ topics: [topic] });
      return topics[0]?.partitions.length ?? 0;
    },
    send: async (batches) => {
      await producer.sendBatch({ acks: -1, timeout: sendTimeoutMs, topicMessages: topicMessagesOf(batches) });
    },
    close,
  };
}

function topicMessagesOf(
  batches: readonly PartitionRecords[],
): { topic: string; messages: KafkaJsMessage[] }[] {
  return batches.map(({ topic, partition, records }) => ({
    topic,
    messages: records.map(({ key, value, headers }) => ({
      key: Buffer.from(key),
      value: Buffer.from(value.buffer, value.byteOffset, value.byteLength),
      partition,
      headers,
    })),
  }));
}
