import { setTimeout as delay } from "node:timers/promises";

import type { KafkaProducer, PartitionRecords, ProducerSettings } from "../port.ts";
import { unknownTopic } from "./protocol-error.ts";
import type { ConfluentModule, RdKafkaConf, RdKafkaError, RdKafkaProducer } from "./structure.ts";

/** librdkafka's own code for a full local queue. */
const queueFull = -184;

/** How soon delivery reports are looked for. */
const pollMs = 5;

interface Report {
  readonly opaque: { readonly settle: (error: Error | undefined) => void };
}

/** An idempotent producer of librdkafka. */
export async function connectProducer(
  { Producer }: ConfluentModule,
  conf: RdKafkaConf,
  { sendTimeoutMs }: ProducerSettings,
): Promise<KafkaProducer> {
  const settings = {
    "linger.ms": 0,
    ...conf,
    "enable.idempotence": true,
    acks: "all",
    "delivery.timeout.ms": sendTimeoutMs,
    dr_cb: true,
  };
  const producer = new Producer(settings as never, {} as never) as unknown as RdKafkaProducer;
  producer.on("event.error", () => {});
  producer.on("delivery-report", ((error: Error | null, { opaque }: Report) => opaque.settle(error ?? undefined)) as never);
  await new Promise<void>((resolve, reject) => {
    producer.connect({ timeout: Math.min(sendTimeoutMs, 10_000) }, (error) => (error ? reject(error) : resolve()));
  });
  producer.setPollInterval(pollMs);
  return {
    partitionCount: (topic) => partitionCount(producer, topic, Math.min(sendTimeoutMs, 10_000)),
    send: (batches) => send(producer, batches),
    close: () =>
      new Promise((resolve) => {
        if (!producer.isConnected()) resolve();
        else producer.disconnect(0, () => resolve());
      }),
  };
}

function partitionCount(producer: RdKafkaProducer, topic: string, timeout: number): Promise<number> {
  return new Promise((resolve, reject) => {
    producer.getMetadata({ topic, timeout }, (error, metadata) => {
      const count = metadata?.topics.find(({ name }) => name === topic)?.partitions.length ?? 0;
      if (error) reject(error);
      else if (count === 0) reject(unknownTopic(topic));
      else resolve(count);
    });
  });
}

async function send(producer: RdKafkaProducer, batches: readonly PartitionRecords[]): Promise<void> {
  const reports: Promise<Error | undefined>[] = [];
  for (const { topic, partition, records } of batches) {
    for (const { key, value, headers } of records) {
      const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
      const list = Object.entries(headers).map(([name, text]) => ({ [name]: text }));
      const { report } = await handOver(producer, (opaque) =>
        producer.produce(topic, partition, bytes, Buffer.from(key), Date.now(), opaque, list),
      );
      reports.push(report);
    }
  }
  // All of them, and not the first that fails: what is still on its way would be taken for given up.
  const failed = (await Promise.all(reports)).find((error) => error !== undefined);
  if (failed !== undefined) throw failed;
}

/** Hands one record over; waits while librdkafka's queue is full. */
async function handOver(
  producer: RdKafkaProducer,
  produce: (opaque: Report["opaque"]) => unknown,
): Promise<{ readonly report: Promise<Error | undefined> }> {
  let settle: (error: Error | undefined) => void = () => {};
  const report = new Promise<Error | undefined>((resolve) => (settle = resolve));
  for (;;) {
    try {
      produce({ settle });
      break;
    } catch (error) {
      if ((error as RdKafkaError).code !== queueFull) {
        settle(error as Error);
        break;
      }
      producer.poll();
      await delay(pollMs);
    }
  }
  return { report };
}
