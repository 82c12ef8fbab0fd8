import type { EventMessage, Publisher } from "idemkit";
import { kafkaPublisher } from "idemkit/kafka";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { ownBroker, whyNoBroker } from "../../../../scripts/kafka/provide.mjs";
import type { Broker } from "../../../../scripts/kafka/broker.mjs";
import { until } from "../../../support/index.ts";
import { createTopic } from "../../../support/kafka.ts";
import type { Binding } from "./clients.ts";
import { eventOf } from "./events.ts";
import { createLedger, inversions } from "./ledger.ts";

/** Sends as the relay does: what did not get through is sent again before anything later. Answers how often it had to. */
async function sendAll(
  publisher: Publisher,
  events: readonly EventMessage[],
  stop: () => boolean,
): Promise<number> {
  let failures = 0;
  for (let at = 0; at < events.length; at += 20) {
    let left = events.slice(at, at + 20);
    while (left.length > 0 && !stop()) {
      const results = await publisher.publish(left);
      left = left.filter((_event, index) => results[index]?.published !== "acknowledged");
      if (left.length === 0) continue;
      failures += 1;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
  return failures;
}

/** What every binding must do when the broker goes away. */
export function describeRestart(binding: Binding): void {
  describe.skipIf(whyNoBroker() !== undefined || binding.installed === false)(
    `${binding.name} and a broker that is killed`,
    () => {
      let broker: Broker;

      beforeAll(async () => {
        broker = await ownBroker();
      }, 120_000);
      afterAll(async () => {
        await broker.remove();
      });

      test("goes on when the broker is back: nothing lost, each effect once, order kept", async () => {
        await using ledger = await createLedger();
        const topic = await createTopic({ partitions: 4, brokers: broker.brokers });
        const client = binding.connect(broker.brokers);
        await using publisher = kafkaPublisher(client, { sendTimeoutMs: 2000 });
        const consumer = ledger.consume({
          client,
          topics: [topic.name],
          batchSize: 10,
          sessionTimeoutMs: 3000,
        });
        await until(() => consumer.stats().assigned === 4, { timeoutMs: 20_000, what: "the partitions" });
        const events = Array.from({ length: 2000 }, (_, at) => eventOf(topic.name, `order-${at % 50}`, at));
        let stopped = false;
        const sending = sendAll(publisher, events, () => stopped);
        try {
          await ledger.reached(300);
          await broker.kill();
          const before = (await ledger.effects()).length;
          expect(before).toBeLessThan(events.length);
          await broker.start();
          await sending;
          const effects = await ledger.reached(events.length, { timeoutMs: 60_000 });
          await topic.drained("ledger", { timeoutMs: 40_000 });
          expect(effects).toHaveLength(events.length);
          expect(inversions(effects)).toEqual([]);
          await consumer.stop();
          expect(consumer.stats()).toMatchObject({ assigned: 0, inFlight: 0, uncommitted: 0 });
        } finally {
          stopped = true;
          await sending;
        }
      }, 150_000);

      test("stops while the broker is away, and owns nothing then", async () => {
        await using ledger = await createLedger();
        const topic = await createTopic({ partitions: 4, brokers: broker.brokers });
        const client = binding.connect(broker.brokers);
        const consumer = ledger.consume({ client, topics: [topic.name], sessionTimeoutMs: 3000 });
        await until(() => consumer.stats().assigned === 4, { timeoutMs: 20_000, what: "the partitions" });
        await broker.kill();
        try {
          await consumer.stop();
          expect(consumer.stats()).toMatchObject({ assigned: 0, inFlight: 0, uncommitted: 0 });
        } finally {
          await broker.start();
        }
      }, 90_000);
    },
  );
}
