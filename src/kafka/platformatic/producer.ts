import type { KafkaProducer, PartitionRecords, ProducerSettings } from "../port.ts";
import { within } from "../within.ts";
import type { PlatformaticMessage, PlatformaticModule, PlatformaticProducer } from "./structure.ts";

/** An idempotent producer of `@platformatic/kafka`: it sets one request in flight and acks from all replicas itself. */
export async function connectProducer(
  { Producer }: PlatformaticModule,
  options: Readonly<Record<string, unknown>>,
  { sendTimeoutMs }: ProducerSettings,
): Promise<KafkaProducer> {
  const producer = new Producer({ ...options, idempotent: true } as never) as unknown as PlatformaticProducer;
  producer.on("error", () => {});
  return {
    partitionCount: async (topic) => {
      const { topics } = await producer.metadata({ topics: [topic] });
      return topics.get(topic)?.partitionsCount ?? 0;
    },
    send: (batches) =>
      within(sendTimeoutMs, producer.send({ messages: batches.flatMap(messagesOf), acks: -1 })),
    close: async () => {
      await producer.close(true).catch(() => {});
    },
  };
}

function messagesOf({ topic, partition, records }: PartitionRecords): PlatformaticMessage[] {
  return records.map(({ key, value, headers }) => ({
    topic,
    partition,
    key: Buffer.from(key),
    value: Buffer.from(value.buffer, value.byteOffset, value.byteLength),
    headers: new Map(Object.entries(headers).map(([name, text]) => [Buffer.from(name), Buffer.from(text)])),
  }));
}
