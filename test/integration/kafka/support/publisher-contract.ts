import type { EventMessage, Published } from "idemkit";
import { eventHeaders } from "idemkit";
import { kafkaPublisher, murmur2Partition } from "idemkit/kafka";
import { describe, expect, test } from "vitest";

import { createTopic, kafkaAvailable, readTopic } from "../../../support/kafka.ts";
import type { Binding } from "./clients.ts";
import { eventOf } from "./events.ts";

function names(results: readonly Published[]): string[] {
  return results.map(({ published }) => published);
}

/** What every binding must do as a publisher. */
export function describePublisher(binding: Binding): void {
  describe.skipIf(!kafkaAvailable() || binding.installed === false)(`a publisher on ${binding.name}`, () => {
    test("sends each event with its headers to the partition that the library computes, in order within a key", async () => {
      const topic = await createTopic({ partitions: 12 });
      const events = Array.from({ length: 300 }, (_, at) =>
        eventOf(topic.name, `заказ-${at % 37}`, at, {
          sagaId: "checkout-1",
          stepName: "charge",
          aggregateVersion: at,
          headers: { [eventHeaders.traceparent]: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00" },
        }),
      );
      await using publisher = kafkaPublisher(binding.connect(), { maxBatchBytes: 4000 });
      expect(new Set(names(await publisher.publish(events)))).toEqual(new Set(["acknowledged"]));
      const records = await readTopic(topic, events.length);
      expect(records.every(({ key, partition }) => partition === murmur2Partition(key, 12))).toBe(true);
      for (const key of new Set(events.map((event) => event.key))) {
        const sent = events.filter((event) => event.key === key).map(({ eventId }) => eventId);
        expect(
          records.filter((record) => record.key === key).map(({ headers }) => headers["event_id"]),
        ).toEqual(sent);
      }
      const first = records.find(({ headers }) => headers["event_id"] === events[0]?.eventId);
      expect(first?.value).toBe('{"n":0}');
      expect(first?.headers).toEqual({
        event_id: events[0]?.eventId,
        event_type: "payment.charged",
        saga_id: "checkout-1",
        step_name: "charge",
        aggregate_version: "0",
        traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
      });
    });

    test("names the headers as CloudEvents does, where asked", async () => {
      const topic = await createTopic({ partitions: 1 });
      const event = eventOf(topic.name, "order-1", 1, { aggregateVersion: 3 });
      await using publisher = kafkaPublisher(binding.connect(), {
        headers: { cloudEvents: { source: "/orders" } },
      });
      await publisher.publish([event]);
      const [record] = await readTopic(topic, 1);
      expect(record?.headers).toEqual({
        ce_specversion: "1.0",
        ce_id: event.eventId,
        ce_source: "/orders",
        ce_type: "payment.charged",
        ce_aggregateversion: "3",
      });
    });

    test("finds the one record that is too large, holds its key back and lets the others through", async () => {
      const topic = await createTopic({ partitions: 1, config: { "max.message.bytes": "20000" } });
      const large = { payload: new Uint8Array(30_000) };
      const events: EventMessage[] = [
        eventOf(topic.name, "order-1", 1),
        eventOf(topic.name, "order-2", 1),
        eventOf(topic.name, "order-1", 2, large),
        eventOf(topic.name, "order-2", 2),
        eventOf(topic.name, "order-1", 3),
        eventOf(topic.name, "order-3", 1),
      ];
      await using publisher = kafkaPublisher(binding.connect(), { maxBatchBytes: 1_000_000 });
      const results = names(await publisher.publish(events));
      expect(results).toEqual([
        "acknowledged",
        "acknowledged",
        "refused",
        "acknowledged",
        "failed",
        "acknowledged",
      ]);
      // Nothing was acknowledged that isn't there, though the pipeline was broken in the middle.
      const found = new Set((await readTopic(topic, 4)).map(({ headers }) => headers["event_id"]));
      for (const [at, event] of events.entries()) {
        expect(found.has(event.eventId)).toBe(results[at] === "acknowledged");
      }
      expect(names(await publisher.publish([eventOf(topic.name, "order-2", 3)]))).toEqual(["acknowledged"]);
    });

    test("refuses an unknown topic once it has been unknown for a while, and goes on with others", async () => {
      const topic = await createTopic({ partitions: 1 });
      const stray = eventOf(`${topic.name}-none`, "order-1", 1);
      await using publisher = kafkaPublisher(binding.connect(), { unknownTopicMs: 1 });
      expect(names(await publisher.publish([stray, eventOf(topic.name, "order-1", 1)]))).toEqual([
        "failed",
        "acknowledged",
      ]);
      expect(names(await publisher.publish([stray]))).toEqual(["refused"]);
    });

    test("sends what comes while a request is under way in the next one, and loses nothing", async () => {
      const topic = await createTopic({ partitions: 4 });
      await using publisher = kafkaPublisher(binding.connect());
      const calls = Array.from({ length: 40 }, (_, at) =>
        publisher.publish([eventOf(topic.name, "order-1", at), eventOf(topic.name, `order-${at}`, at)]),
      );
      expect(new Set(names((await Promise.all(calls)).flat()))).toEqual(new Set(["acknowledged"]));
      const numbers = (await readTopic(topic, 80))
        .filter(({ key }) => key === "order-1")
        .map(({ value }) => (JSON.parse(value) as { n: number }).n);
      // order-1 came twice with number 1: as every call's first and as the second of one.
      expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
    });
  });
}
