import { expect, test } from "vitest";

import type { EventMessage } from "../core/event.ts";
import { inProcessPublisher } from "./in-process-publisher.ts";

function message(key: string, number: number): EventMessage {
  const eventId = `${key}-${number}`;
  return { eventId, type: "order.created", topic: "order", key, payload: new Uint8Array(), headers: {} };
}

const messages = [message("a", 1), message("b", 1), message("a", 2), message("b", 2), message("a", 3)];

test("every receiver gets every event, those of a key in order", async () => {
  const received: string[][] = [[], []];
  const receivers = received.map(
    (ids) =>
      async ({ eventId }: EventMessage) =>
        ids.push(eventId),
  );
  const results = await inProcessPublisher(receivers, { concurrency: 2 }).publish(messages);
  expect(results).toEqual(messages.map(() => ({ published: "acknowledged" })));
  for (const ids of received) {
    expect(ids.filter((id) => id.startsWith("a"))).toEqual(["a-1", "a-2", "a-3"]);
    expect(ids.filter((id) => id.startsWith("b"))).toEqual(["b-1", "b-2"]);
  }
});

test("behind an event that failed nothing of its key is delivered, and other keys are", async () => {
  const received: string[] = [];
  const publisher = inProcessPublisher([
    async ({ eventId }) => {
      if (eventId === "a-2") throw new Error("the ledger is away");
      received.push(eventId);
    },
  ]);
  const results = await publisher.publish(messages);
  expect(results.map(({ published }) => published)).toEqual([
    "acknowledged",
    "acknowledged",
    "failed",
    "acknowledged",
    "failed",
  ]);
  expect([...received].sort()).toEqual(["a-1", "b-1", "b-2"]);
});

test("keys are delivered at the same time, as many as asked for", async () => {
  let running = 0;
  let most = 0;
  const publisher = inProcessPublisher(
    [
      async () => {
        running += 1;
        most = Math.max(most, running);
        await new Promise((resolve) => setImmediate(resolve));
        running -= 1;
      },
    ],
    { concurrency: 3 },
  );
  await publisher.publish(Array.from({ length: 20 }, (_, n) => message(`key-${n}`, 1)));
  expect(most).toBe(3);
});

test("nothing more is delivered once the signal has aborted", async () => {
  const controller = new AbortController();
  const received: string[] = [];
  const publisher = inProcessPublisher(
    [
      async ({ eventId }) => {
        received.push(eventId);
        controller.abort();
      },
    ],
    { concurrency: 1 },
  );
  const results = await publisher.publish(messages, controller.signal);
  expect(received).toEqual(["a-1"]);
  expect(results.filter(({ published }) => published === "failed")).toHaveLength(4);
});
