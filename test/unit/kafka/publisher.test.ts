import { kafkaPublisher } from "idemkit/kafka";
import type { KafkaClient, PartitionRecords } from "idemkit/kafka";
import { describe, expect, test } from "vitest";

import { deferred } from "../../support/deferred.ts";
import { eventOf } from "../../integration/kafka/support/events.ts";

/** A client whose sends the test decides; no broker could be made to fail at the right moment. */
function clientThat(
  send: (batches: readonly PartitionRecords[]) => Promise<void>,
): KafkaClient & { connected: number } {
  const client = {
    name: "test",
    connected: 0,
    capabilities: { awaitsRevocation: false, keepsPartitions: false },
    connectProducer: async () => {
      client.connected += 1;
      return { partitionCount: async () => 1, send, close: async () => {} };
    },
    joinGroup: () => {
      throw new Error("not a consumer");
    },
    protocolErrorOf: (error: unknown) => (error as { type?: string }).type,
  };
  return client;
}

describe("the order of the publisher", () => {
  test("does not send an event that was handed over behind one of its key that failed", async () => {
    const sent: string[] = [];
    const broken = deferred();
    let sends = 0;
    const client = clientThat(async (batches) => {
      sends += 1;
      if (sends === 1) {
        await broken.promise;
        throw new Error("connection lost");
      }
      sent.push(...batches.flatMap(({ records }) => records.map(({ key }) => key)));
    });
    const publisher = kafkaPublisher(client);
    const first = publisher.publish([eventOf("orders", "order-1", 1)]);
    // The first request is under way: this one waits behind it.
    await new Promise((resolve) => setImmediate(resolve));
    const second = publisher.publish([eventOf("orders", "order-1", 2), eventOf("orders", "order-2", 1)]);
    broken.resolve();
    expect((await first).map(({ published }) => published)).toEqual(["failed"]);
    expect((await second).map(({ published }) => published)).toEqual(["failed", "acknowledged"]);
    expect(sent).toEqual(["order-2"]);
    const again = publisher.publish([eventOf("orders", "order-1", 1), eventOf("orders", "order-1", 2)]);
    expect((await again).map(({ published }) => published)).toEqual(["acknowledged", "acknowledged"]);
  });

  test("takes a fresh producer after an error, since the old one's sequence numbers can't be trusted", async () => {
    let sends = 0;
    const client = clientThat(async () => {
      sends += 1;
      if (sends === 1) throw new Error("connection lost");
    });
    const publisher = kafkaPublisher(client);
    await publisher.publish([eventOf("orders", "order-1", 1)]);
    await publisher.publish([eventOf("orders", "order-1", 1)]);
    expect(client.connected).toBe(2);
  });

  test("sends one request at a time", async () => {
    let under = 0;
    let most = 0;
    const client = clientThat(async () => {
      under += 1;
      most = Math.max(most, under);
      await new Promise((resolve) => setImmediate(resolve));
      under -= 1;
    });
    const publisher = kafkaPublisher(client, { maxBatchBytes: 1000 });
    const calls = Array.from({ length: 20 }, (_, n) =>
      publisher.publish(Array.from({ length: 30 }, () => eventOf("orders", "order-1", n))),
    );
    await Promise.all(calls);
    expect(most).toBe(1);
  });
});
