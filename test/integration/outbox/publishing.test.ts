import { enqueueAll, outboxStatus, parkedOutboxKeys, releaseOutboxKey } from "idemkit";
import type { EventMessage, OutgoingEvent, ParkedKey, Published, Relay } from "idemkit";
import { fromPg } from "idemkit/pg";
import { expect, test } from "vitest";

import { createPool, pgBouncerAvailable, startPgBouncer, until } from "../../support/index.ts";
import { acknowledged, createOutbox, order, recordingPublisher, relay, send, versions } from "./support.ts";
import type { Outbox } from "./support.ts";

const refused: Published = { published: "refused", error: new Error("the message is too large") };
const down: Published = { published: "failed", error: new Error("the broker is away") };

function left({ database }: Outbox): Promise<number> {
  return outboxStatus(database).then(({ unpublished }) => unpublished);
}

test("a message carries what was enqueued, and its row is gone once it is acknowledged", async () => {
  const outbox = await createOutbox();
  const publisher = recordingPublisher();
  const [eventId] = await send(outbox.database, {
    type: "payment.charged",
    topic: "payments",
    key: "order-1",
    payload: { amount: "12.50" },
    aggregateVersion: 7,
    sagaId: "saga-1",
    stepName: "charge",
    headers: { tenant: "a" },
  });
  relay(outbox.database, publisher);
  await until(async () => (await left(outbox)) === 0);
  expect(publisher.accepted).toEqual([
    {
      eventId,
      type: "payment.charged",
      topic: "payments",
      key: "order-1",
      payload: Buffer.from('{"amount":"12.50"}'),
      aggregateVersion: 7,
      sagaId: "saga-1",
      stepName: "charge",
      headers: { tenant: "a" },
    },
  ]);
});

test("while the broker is away nothing is deleted, and tries are paced; back, all comes in order", async () => {
  const outbox = await createOutbox();
  const publisher = recordingPublisher();
  let tries = 0;
  publisher.decide = () => {
    tries += 1;
    return down;
  };
  const errors: string[] = [];
  const logger = { info: (text: string) => errors.push(text), error: (text: string) => errors.push(text) };
  await send(outbox.database, order("order-1", 1), order("order-1", 2), order("order-1", 3));
  const startedMs = performance.now();
  const running = relay(outbox.database, publisher, { logger });
  await until(() => tries >= 4);
  // Three rests lie between four tries, each of at least 50 ms, however often the relay polls meanwhile.
  expect(performance.now() - startedMs).toBeGreaterThan(150);
  expect(await left(outbox)).toBe(3);
  expect(running.stats()).toMatchObject({ published: 0, parked: 0 });

  publisher.decide = () => acknowledged;
  await until(async () => (await left(outbox)) === 0);
  expect(versions(publisher.accepted)).toEqual([1, 2, 3]);
  expect(errors).toEqual([
    "idemkit: the relay could not publish and goes on trying: Error: the broker is away",
    "idemkit: the relay publishes again",
  ]);
});

test("what was acknowledged of a batch is not sent again when the rest of it failed", async () => {
  const outbox = await createOutbox();
  const publisher = recordingPublisher();
  const failing = new Set(["order-2"]);
  publisher.decide = ({ key }) => (failing.has(key) ? down : acknowledged);
  await send(outbox.database, order("order-1"), order("order-2"), order("order-3"));
  relay(outbox.database, publisher);
  await until(async () => (await left(outbox)) === 1);
  failing.clear();
  await until(async () => (await left(outbox)) === 0);
  expect(publisher.accepted.map(({ key }) => key).toSorted()).toEqual(["order-1", "order-2", "order-3"]);
});

test.each([
  ["rejects", () => Promise.reject(new Error("boom"))],
  [
    "throws",
    () => {
      throw new Error("boom");
    },
  ],
  ["answers for fewer messages than it was given", () => Promise.resolve([])],
])("a publisher that %s loses nothing", async (_, broken) => {
  const outbox = await createOutbox();
  const publisher = recordingPublisher();
  const { publish } = publisher;
  publisher.publish = broken;
  await send(outbox.database, order("order-1"));
  const running = relay(outbox.database, publisher);
  await until(() => running.stats().failures > 0);
  expect(await left(outbox)).toBe(1);
  publisher.publish = publish;
  await until(async () => (await left(outbox)) === 0);
  expect(publisher.accepted).toHaveLength(1);
});

/** An outbox whose key `bad` is refused at its second event, with a relay that has parked it. */
async function parkedOutbox(outbox: Outbox): Promise<{
  publisher: ReturnType<typeof recordingPublisher>;
  running: Relay;
  parked: ParkedKey[];
}> {
  const publisher = recordingPublisher();
  publisher.decide = ({ key, aggregateVersion }) =>
    key === "bad" && aggregateVersion === 2 ? refused : acknowledged;
  const parked: ParkedKey[] = [];
  await send(outbox.database, order("bad", 1), order("bad", 2), order("bad", 3), order("good", 1));
  const running = relay(outbox.database, publisher, { onParked: (each) => parked.push(each) });
  await until(() => parked.length === 1);
  return { publisher, running, parked };
}

function versionsOf(messages: readonly EventMessage[], key: string): unknown[] {
  return versions(messages.filter((message) => message.key === key));
}

test("a refused event parks its key and holds its followers, and other keys flow on", async () => {
  const outbox = await createOutbox();
  const { publisher, running, parked } = await parkedOutbox(outbox);
  await send(outbox.database, order("bad", 4), order("good", 2));
  await until(async () => (await left(outbox)) === 0);
  expect(versionsOf(publisher.accepted, "bad")).toEqual([1]);
  expect(versionsOf(publisher.accepted, "good")).toEqual([1, 2]);
  expect(parked).toMatchObject([{ topic: "order", key: "bad", reason: "the message is too large", held: 2 }]);
  expect(await parkedOutboxKeys(outbox.database)).toMatchObject([
    { key: "bad", eventId: parked[0]?.eventId, held: 3 },
  ]);
  expect((await outboxStatus(outbox.database)).parkedKeys).toBe(1);
  expect(running.stats()).toMatchObject({ published: 3, parked: 1 });
});

test("a released key sends everything that was held, in order and ahead of what came since", async () => {
  const outbox = await createOutbox();
  const { publisher } = await parkedOutbox(outbox);
  publisher.decide = () => acknowledged;
  expect(await releaseOutboxKey(outbox.database, { topic: "order", key: "bad" })).toBe(2);
  await send(outbox.database, order("bad", 4));
  await until(async () => (await left(outbox)) === 0);
  expect(versionsOf(publisher.accepted, "bad")).toEqual([1, 2, 3, 4]);
  expect(await parkedOutboxKeys(outbox.database)).toEqual([]);
  expect(await releaseOutboxKey(outbox.database, { topic: "order", key: "bad" })).toBeUndefined();
});

test("a key whose event is still refused is parked again, and loses nothing", async () => {
  const outbox = await createOutbox();
  const { publisher, parked } = await parkedOutbox(outbox);
  await releaseOutboxKey(outbox.database, { topic: "order", key: "bad" });
  await until(() => parked.length === 2);
  await until(async () => (await left(outbox)) === 0);
  expect(versionsOf(publisher.accepted, "bad")).toEqual([1]);
  expect(await parkedOutboxKeys(outbox.database)).toMatchObject([{ held: 2 }]);
});

test("a refused event may be dropped, and its followers go on without it", async () => {
  const outbox = await createOutbox();
  const { publisher } = await parkedOutbox(outbox);
  const key = { topic: "order", key: "bad" };
  expect(await releaseOutboxKey(outbox.database, key, { discardRefused: true })).toBe(1);
  await until(async () => (await left(outbox)) === 0);
  expect(versionsOf(publisher.accepted, "bad")).toEqual([1, 3]);
});

test("a topic that is refused as a whole parks all its keys in one go, and says so once", async () => {
  const outbox = await createOutbox();
  const publisher = recordingPublisher();
  publisher.decide = ({ topic }) => (topic === "gone" ? refused : acknowledged);
  const errors: string[] = [];
  const parked: string[] = [];
  const keys = Array.from({ length: 300 }, (_, n) => `order-${n}`);
  await send(outbox.database, ...keys.map((key) => ({ ...order(key), topic: "gone" })), order("other"));
  relay(outbox.database, publisher, {
    logger: { info: () => {}, error: (text) => errors.push(text) },
    onParked: ({ key }) => parked.push(key),
  });
  await until(() => parked.length === 300);
  expect(new Set(parked)).toEqual(new Set(keys));
  expect(errors.length).toBeLessThanOrEqual(16); // one for each shard's batch
  expect(errors[0]).toMatch(
    /events of gone were refused and \d+ of its keys are parked: the message is too large/,
  );
  expect((await outboxStatus(outbox.database)).parkedKeys).toBe(300);
  await until(() => publisher.accepted.length === 1);
});

test("the same key of another topic is not parked along", async () => {
  const outbox = await createOutbox();
  const { publisher } = await parkedOutbox(outbox);
  await send(outbox.database, { ...order("bad", 9), topic: "sales" });
  await until(async () => (await left(outbox)) === 0);
  expect(publisher.accepted.filter(({ topic }) => topic === "sales")).toHaveLength(1);
});

test("stopping waits for the batch in flight, and what it published is not sent again", async () => {
  const outbox = await createOutbox();
  const publisher = recordingPublisher();
  let answer: (result: Published) => void = () => {};
  let inFlight = false;
  publisher.decide = () => {
    inFlight = true;
    return new Promise((resolve) => (answer = resolve));
  };
  await send(outbox.database, order("order-1"));
  const running = relay(outbox.database, publisher);
  await until(() => inFlight);
  let stopped = false;
  const stopping = Promise.all([running.stop(), running.stop()]).then(() => (stopped = true));
  expect(await left(outbox)).toBe(1);
  expect(stopped).toBe(false);
  answer(acknowledged);
  await stopping;
  expect(await left(outbox)).toBe(0);
  expect(publisher.accepted).toHaveLength(1);
});

test("a batch is bounded by its bytes too, and an event of any size gets through", async () => {
  const outbox = await createOutbox();
  const publisher = recordingPublisher();
  const large = (n: number): OutgoingEvent => ({
    ...order("order-1", n),
    payload: new Uint8Array(3_000_000),
  });
  for (let n = 1; n <= 7; n += 1) {
    const own = await outbox.client();
    await own.query("begin");
    await enqueueAll(own, [large(n)], { maxBytes: 10_000_000 });
    await own.query("commit");
    own.release();
  }
  relay(outbox.database, publisher);
  await until(async () => (await left(outbox)) === 0);
  expect(versions(publisher.accepted)).toEqual([1, 2, 3, 4, 5, 6, 7]);
  expect(Math.max(...publisher.batches)).toBe(3); // the third begins below 8 MB
});

test.runIf(pgBouncerAvailable())("a relay works behind a transaction-pooling proxy", async () => {
  const outbox = await createOutbox();
  await using proxy = await startPgBouncer(outbox.test.connectionString, { poolSize: 3 });
  const publisher = recordingPublisher();
  const pool = createPool(proxy.connectionString, { max: 6 });
  const database = fromPg(pool, { preparedStatements: false });
  const running = relay(database, publisher);
  for (let n = 1; n <= 10; n += 1) await send(database, order("order-1", n));
  await until(async () => (await left(outbox)) === 0);
  await running.stop();
  await pool.end();
  expect(versions(publisher.accepted)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
});
