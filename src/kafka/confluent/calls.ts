import type { ConsumedRecord, PartitionOffset } from "../port.ts";
import type { RdKafkaConsumer, RdKafkaMessage, RdKafkaPartition } from "./structure.ts";

/** How long the first look at the brokers may take. */
const connectMs = 10_000;

export function connected(consumer: RdKafkaConsumer): Promise<void> {
  return new Promise((resolve, reject) => {
    consumer.connect({ timeout: connectMs }, (error) => {
      if (error) reject(error);
      else resolve();
    });
  });
}

export function disconnected(consumer: RdKafkaConsumer): Promise<void> {
  return new Promise((resolve) => {
    consumer.disconnect(() => resolve());
  });
}

export function consumed(consumer: RdKafkaConsumer, number: number): Promise<RdKafkaMessage[]> {
  return new Promise((resolve, reject) => {
    consumer.consume(number, (error, messages = []) => {
      if (error) reject(error);
      else resolve(messages);
    });
  });
}

export function committed(consumer: RdKafkaConsumer, offsets: readonly PartitionOffset[]): Promise<void> {
  const list = offsets.map(({ topic, partition, offset }) => ({ topic, partition, offset: Number(offset) }));
  return new Promise((resolve, reject) => {
    consumer.commitCb(list, (error) => {
      if (error) reject(error);
      else resolve();
    });
  });
}

export function byPartition(messages: readonly RdKafkaMessage[]): Map<string, ConsumedRecord[]> {
  const found = new Map<string, ConsumedRecord[]>();
  for (const message of messages) {
    const records = found.get(nameOf(message)) ?? [];
    found.set(nameOf(message), records);
    records.push(recordOf(message));
  }
  return found;
}

function recordOf({ offset, key, value, headers = [] }: RdKafkaMessage): ConsumedRecord {
  const texts: Record<string, string> = {};
  for (const header of headers) {
    for (const [name, text] of Object.entries(header)) texts[name] = text.toString();
  }
  return {
    offset: BigInt(offset),
    key: typeof key === "string" ? Buffer.from(key) : (key ?? null),
    value,
    headers: texts,
  };
}

export function nameOf({ topic, partition }: RdKafkaPartition): string {
  return `${topic}/${partition}`;
}

export function withoutOffset({ topic, partition }: RdKafkaPartition): RdKafkaPartition {
  return { topic, partition };
}
