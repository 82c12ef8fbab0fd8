import { expect, test } from "vitest";

import type { OutgoingEvent } from "../core/event.ts";
import { checkEvent } from "./outgoing.ts";

const settings = { eventId: "018f0000-0000-7000-8000-000000000000", maxBytes: 1000 };
const event: OutgoingEvent = { type: "order.created", key: "order-1", payload: {} };

const faults: readonly [
  string,
  Partial<Record<keyof OutgoingEvent, unknown>> & Record<string, unknown>,
  string,
][] = [
  ["an empty type", { type: "" }, "type"],
  ["a type with a space", { type: "order created" }, "type"],
  ["a type that makes no topic", { type: "заказ" }, "type"],
  ["a topic that Kafka refuses", { topic: "a/b" }, "topic"],
  ["a missing key", { key: undefined }, "key"],
  ["an empty key", { key: "" }, "key"],
  ["a key with NUL", { key: "a\0b" }, "key"],
  ["a key with half a character", { key: "\ud800" }, "key"],
  ["no payload", { payload: undefined }, "payload/"],
  ["an unsafe number", { payload: { total: 2 ** 53 } }, "payload/total"],
  ["a number that JSON lacks", { payload: [Number.NaN] }, "payload/0"],
  ["a Map", { payload: { items: new Map() } }, "payload/items"],
  ["a fractional version", { aggregateVersion: 1.5 }, "aggregateVersion"],
  ["a negative version", { aggregateVersion: -1 }, "aggregateVersion"],
  ["an empty saga id", { sagaId: "" }, "sagaId"],
  ["a header that idemkit sets", { headers: { Event_ID: "x" } }, "headers.Event_ID"],
  ["a header that is no string", { headers: { retries: 1 } }, "headers.retries"],
];

test.each(faults)("%s is refused at the call", (_, change, at) => {
  const faulty = { ...event, ...change } as OutgoingEvent;
  expect(() => checkEvent(faulty, settings)).toThrow(
    expect.objectContaining({ code: "outbox_event_invalid", details: { at } }),
  );
});

test("a misspelt member of an event is named, with the nearest", () => {
  const misspelt = { ...event, agregateVersion: 2 } as OutgoingEvent;
  expect(() => checkEvent(misspelt, settings)).toThrow(/agregateVersion.*did you mean aggregateVersion/);
});

test("the topic is the type's first part, unless one is given", () => {
  expect(checkEvent(event, settings).topic).toBe("order");
  expect(checkEvent({ ...event, type: "order" }, settings).topic).toBe("order");
  expect(checkEvent({ ...event, topic: "sales" }, settings).topic).toBe("sales");
});

test("what the caller left out is null in the row", () => {
  const { headers, aggregateVersion, sagaId, stepName } = checkEvent(event, settings);
  expect([headers, aggregateVersion, sagaId, stepName]).toEqual([null, null, null, null]);
});
