import { setTimeout as delay } from "node:timers/promises";

import type { KafkaProducer, PartitionRecords, ProducerSettings } from "../port.ts";
import { deferred } from "../../internal/deferred.ts";
import { within } from "../within.ts";
import { protocolErrorOf, unknownTopic } from "./protocol-error.ts";
import type { ConfluentModule, RdKafkaConf, RdKafkaError, RdKafkaProducer } from "./structure.ts";

/** librdkafka's own code for a full local queue. */
const queueFull = -184;

/** How soon delivery reports are looked for. */
const pollMs = 5;

/** How long the other records of a send that has failed are waited for. */
const stragglersMs = 1000;

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
    // After a record that failed nothing more of the pipeline gets through, least of all the next record of its key.
    "enable.gapless.guarantee": true,
    // The gapless guarantee leaves out records that timed out: the time is kept here, and the whole pipeline given up.
    "delivery.timeout.ms": 0,
    dr_cb: true,
  };
  const producer = new Producer(settings as never, {} as never) as unknown as RdKafkaProducer;
  producer.on("event.error", () => {});
  producer.on("delivery-report", (error: Error | null, { opaque }: Report) =>
    opaque.settle(error ?? undefined),
  );
  await new Promise<void>((resolve, reject) => {
    producer.connect({ timeout: Math.min(sendTimeoutMs, 10_000) }, (error) =>
      error ? reject(error) : resolve(),
    );
  });
  producer.setPollInterval(pollMs);
  return {
    partitionCount: (topic) => partitionCount(producer, topic, Math.min(sendTimeoutMs, 10_000)),
    send: (batches) => within(sendTimeoutMs, send(producer, batches)),
    close: () =>
      new Promise((resolve) => {
        if (producer.isConnected()) producer.disconnect(0, () => resolve());
        else resolve();
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
      const { report, handedOver } = await handOver(producer, (opaque) =>
        producer.produce(topic, partition, bytes, Buffer.from(key), Date.now(), opaque, list),
      );
      reports.push(report);
      if (!handedOver) return judge(reports);
    }
  }
  return judge(reports);
}

/**
 * Waits for all, and not for the first that fails: what is still on its way would be taken for given up. But records that the broker
 * refused for the gap before them wait for ever in a producer that has failed for good, so then not for long. Whatever of
 * the old producer arrives later is a repeat of what the next one sends, and behind no gap.
 */
async function judge(reports: readonly Promise<Error | undefined>[]): Promise<void> {
  const errors: Error[] = [];
  const broken = deferred<undefined>();
  const all = reports.map(async (report) => {
    const error = await report;
    if (error === undefined) return;
    errors.push(error);
    broken.resolve(undefined);
  });
  const enough = broken.promise.then(() => delay(stragglersMs, undefined, { ref: false }));
  await Promise.race([Promise.all(all), enough]);
  // The reason, before what was dropped because of it.
  const failed = errors.find((error) => protocolErrorOf(error) !== undefined) ?? errors[0];
  if (failed !== undefined) throw failed;
}

/** Hands one record over; waits while librdkafka's queue is full. */
async function handOver(
  producer: RdKafkaProducer,
  produce: (opaque: Report["opaque"]) => unknown,
): Promise<{ readonly report: Promise<Error | undefined>; readonly handedOver: boolean }> {
  const { promise: report, resolve: settle } = deferred<Error | undefined>();
  for (;;) {
    try {
      produce({ settle });
      return { report, handedOver: true };
    } catch (error) {
      if ((error as RdKafkaError).code !== queueFull) {
        settle(error as Error);
        return { report, handedOver: false };
      }
      producer.poll();
      await delay(pollMs);
    }
  }
}
