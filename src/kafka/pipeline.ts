import type { KafkaClient, KafkaProducer, PartitionRecords } from "./port.ts";

/**
 * The producer in use, thrown away after every error: an idempotent producer numbers its records, and after a send
 * whose fate is unknown a client may give a number to other records than the broker has under it. The broker would
 * then take the new records for a repeat, acknowledge them and drop them.
 */
export interface Pipeline {
  partitionCount(topic: string): Promise<number>;
  send(batches: readonly PartitionRecords[]): Promise<void>;
  close(): Promise<void>;
}

/** How long a topic's number of partitions is believed. */
const countsAgeMs = 300_000;

/** A pipeline that connects when it is needed. */
export function pipeline(client: KafkaClient, sendTimeoutMs: number, nowMs: () => number): Pipeline {
  let current: Promise<KafkaProducer> | undefined;
  const counts = new Map<string, { readonly count: number; readonly at: number }>();

  async function using<T>(work: (producer: KafkaProducer) => Promise<T>): Promise<T> {
    current ??= client.connectProducer({ sendTimeoutMs });
    const mine = current;
    try {
      return await work(await mine);
    } catch (error) {
      if (current === mine) current = undefined;
      void mine.then((producer) => producer.close()).catch(() => {});
      throw error;
    }
  }

  async function partitionCount(topic: string): Promise<number> {
    const known = counts.get(topic);
    if (known !== undefined && nowMs() - known.at < countsAgeMs) return known.count;
    const count = await using((producer) => producer.partitionCount(topic));
    counts.set(topic, { count, at: nowMs() });
    return count;
  }

  async function send(batches: readonly PartitionRecords[]): Promise<void> {
    try {
      await using((producer) => producer.send(batches));
    } catch (error) {
      // Whatever happened, the topics may have changed.
      counts.clear();
      throw error;
    }
  }

  return {
    partitionCount,
    send,
    close: async () => {
      const last = current;
      current = undefined;
      await last?.then((producer) => producer.close()).catch(() => {});
    },
  };
}
