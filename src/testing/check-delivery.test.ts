import { expect, test } from "vitest";

import { checkDelivery } from "./check-delivery.ts";
import type { SeenEvent } from "./check-delivery.ts";

function events(...names: readonly string[]): SeenEvent[] {
  return names.map((eventId) => ({ eventId, key: eventId.slice(0, 1) }));
}

const committed = events("a1", "b1", "a2", "b2", "a3");

test("what arrives once and in order is faultless, however keys mix", () => {
  const check = checkDelivery(committed, events("b1", "a1", "b2", "a2", "a3"));
  expect(check).toEqual({ events: 5, delivered: 5, resent: 0, lost: 0, foreign: 0, inverted: 0, faults: [] });
});

test("a re-send is no inversion, since order is that of the first deliveries", () => {
  const check = checkDelivery(committed, events("a1", "a2", "a1", "b1", "a2", "a3", "b2", "a1"));
  expect(check).toMatchObject({ resent: 3, lost: 0, inverted: 0 });
});

test("an event that overtakes an earlier one of its key inverts it", () => {
  const check = checkDelivery(committed, events("a1", "a3", "a2", "b1", "b2"));
  expect(check).toMatchObject({
    inverted: 1,
    faults: ["a2 of a, committed as number 1, came after number 2"],
  });
});

test("what never arrives is lost, and what nobody committed is foreign", () => {
  const check = checkDelivery(committed, [
    ...events("a1", "b1", "a2", "b2", "c9"),
    { eventId: "a3", key: "b" },
  ]);
  expect(check).toMatchObject({ lost: 0, foreign: 2 });
  expect(checkDelivery(committed, events("a1"))).toMatchObject({ lost: 4, foreign: 0 });
});
