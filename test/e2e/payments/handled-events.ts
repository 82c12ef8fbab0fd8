import { expect } from "vitest";

/** Checks that a transcript's first line about events says that both consumers have handled all of them, once. */
export const expectHandled = (transcript: string): void => {
  const line = transcript.split("\n").find((each) => each.startsWith("  events: ")) ?? "";
  const [created = 0, charged = 0, refunded = 0, paid = 0, waiting, entries, notifications] = [
    ...line.matchAll(/(?<![\w.])\d+/gu),
  ].map(([digits]) => Number(digits));
  expect(created).toBeGreaterThanOrEqual(3);
  expect(charged).toBeGreaterThanOrEqual(3);
  expect({ waiting, entries, notifications }).toEqual({
    waiting: 0,
    entries: created + charged + refunded,
    notifications: created + charged + refunded + paid,
  });
};
