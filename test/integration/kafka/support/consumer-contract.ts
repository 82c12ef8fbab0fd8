import { randomUUID } from "node:crypto";

import type { EventMessage } from "idemkit";
import { kafkaPublisher } from "idemkit/kafka";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { deferred } from "../../../support/deferred.ts";
import { until } from "../../../support/index.ts";
import { createTopic, kafkaAvailable, kafkaJs } from "../../../support/kafka.ts";
import type { TestTopic } from "../../../support/kafka.ts";
import type { Binding } from "./clients.ts";
import { eventOf } from "./events.ts";
import { createLedger, inversions, numbersByKey } from "./ledger.ts";
import type { Ledger } from "./ledger.ts";

/** `each` events of each of `keys` keys, the keys taking turns. */
function eventsOf(topic: string, keys: number, each: number): EventMessage[] {
  return Array.from({ length: keys * each }, (_, at) =>
    eventOf(topic, `order-${at % keys}`, 1 + Math.floor(at / keys)),
  );
}

async function publish(binding: Binding, events: readonly EventMessage[]): Promise<void> {
  await using publisher = kafkaPublisher(binding.connect());
  const results = await publisher.publish(events);
  expect(results.every(({ published }) => published === "acknowledged")).toBe(true);
}

/** What every binding must do as a consumer. */
export function describeConsumer(binding: Binding): void {
  describe.skipIf(!kafkaAvailable() || binding.installed === false)(`a consumer on ${binding.name}`, () => {
    let ledger: Ledger;
    let topic: TestTopic;

    beforeEach(async () => {
      [ledger, topic] = await Promise.all([createLedger(), createTopic({ partitions: 4 })]);
    });
    afterEach(async () => {
      await ledger[Symbol.asyncDispose]();
    });

    test("handles every event once, in order within each key, and commits all offsets", async () => {
      const events = eventsOf(topic.name, 20, 10);
      await publish(binding, events);
      await publish(binding, events);
      const consumer = ledger.consume({ client: binding.connect(), topics: [topic.name] });
      await until(() => consumer.outcomes.length === 400, { timeoutMs: 20_000, what: "400 outcomes" });
      await topic.drained("ledger");
      const effects = await ledger.effects();
      expect(effects).toHaveLength(200);
      expect(inversions(effects)).toEqual([]);
      expect(consumer.outcomes.filter((outcome) => outcome === "duplicate")).toHaveLength(200);
      expect(consumer.stats()).toMatchObject({ inFlight: 0, uncommitted: 0, paused: false, assigned: 4 });
    });

    test("gives every event to two consumers of different names", async () => {
      await publish(binding, eventsOf(topic.name, 5, 4));
      ledger.consume({ client: binding.connect(), topics: [topic.name], consumer: "ledger" });
      ledger.consume({ client: binding.connect(), topics: [topic.name], consumer: "mailer" });
      expect(await ledger.reached(20, { consumer: "ledger" })).toHaveLength(20);
      expect(await ledger.reached(20, { consumer: "mailer" })).toHaveLength(20);
    });

    test("puts a message that is no event away as a dead letter and goes on", async () => {
      const producer = kafkaJs().producer();
      await producer.connect();
      await producer.send({
        topic: topic.name,
        messages: [
          { key: "order-0", value: "{}", partition: 0 },
          { key: null, value: "not json", partition: 0, headers: { event_id: "42", event_type: "a" } },
          {
            key: "order-0\0",
            value: "{}",
            partition: 1,
            headers: { event_id: randomUUID(), event_type: "a\0b" },
          },
          {
            key: "order-0",
            value: "{}",
            partition: 1,
            headers: { event_id: randomUUID(), event_type: "payment.charged", aggregate_version: "-1" },
          },
          {
            key: "order-0",
            value: "{}",
            partition: 1,
            headers: { event_id: randomUUID(), event_type: "payment.charged", aggregate_version: "" },
          },
        ],
      });
      await producer.disconnect();
      await publish(binding, eventsOf(topic.name, 4, 1));
      const consumer = ledger.consume({ client: binding.connect(), topics: [topic.name] });
      await ledger.reached(4);
      await topic.drained("ledger");
      expect(consumer.outcomes.filter((outcome) => outcome === "dead-lettered")).toHaveLength(5);
      const { rows } = await ledger.pool.query("select distinct reason from idemkit.dead_letter");
      expect(rows).toEqual([{ reason: "malformed" }]);
    });

    test("lets other keys pass a poison message, and moves the offset on once it is a dead letter", async () => {
      await publish(binding, eventsOf(topic.name, 50, 4));
      let others = 0;
      const consumer = ledger.consume({
        client: binding.connect(),
        topics: [topic.name],
        retry: { attempts: 4, baseMs: 300, maxMs: 600 },
        before: async ({ key, data }) => {
          if (key === "order-7" && (data as { n: number }).n === 2) throw new Error("poison");
        },
      });
      await until(
        async () => {
          others = (await ledger.effects()).filter(({ key }) => key !== "order-7").length;
          return others === 196;
        },
        { timeoutMs: 20_000, what: "the other keys" },
      );
      expect(consumer.outcomes).not.toContain("dead-lettered");
      await ledger.reached(199);
      await topic.drained("ledger");
      expect(numbersByKey(await ledger.effects())["order-7"]).toEqual([1, 3, 4]);
      expect(consumer.outcomes.filter((outcome) => outcome === "dead-lettered")).toHaveLength(1);
    });

    test("hands partitions over when members join and leave: nothing lost, nothing twice, order kept", async () => {
      const events = eventsOf(topic.name, 40, 30);
      const options = { client: binding.connect(), topics: [topic.name], batchSize: 7, concurrency: 2 };
      const first = ledger.consume(options);
      await until(() => first.stats().assigned === 4, {
        timeoutMs: 15_000,
        what: "the first member's partitions",
      });
      const published = publish(binding, events);
      const second = ledger.consume({ ...options, client: binding.connect() });
      await until(() => second.stats().assigned === 2 && first.stats().assigned === 2, {
        timeoutMs: 20_000,
        what: "two partitions for each",
      });
      await published;
      await first.stop();
      await until(() => second.stats().assigned === 4, {
        timeoutMs: 20_000,
        what: "all partitions for the second",
      });
      const effects = await ledger.reached(events.length, { timeoutMs: 30_000 });
      await topic.drained("ledger");
      expect(effects).toHaveLength(events.length);
      expect(inversions(effects)).toEqual([]);
    });

    test("on stop lets what is in flight end, commits it and leaves, so that the next member starts behind it", async () => {
      await publish(binding, eventsOf(topic.name, 1, 3));
      const gate = deferred();
      const entered = deferred();
      const first = ledger.consume({
        client: binding.connect(),
        topics: [topic.name],
        batchSize: 1,
        before: async () => {
          entered.resolve();
          await gate.promise;
        },
      });
      await entered.promise;
      const stopped = first.stop();
      gate.resolve();
      await stopped;
      expect(await ledger.effects()).toHaveLength(1);
      expect((await topic.committed(topic.groupOf("ledger"))).filter((offset) => offset > 0)).toEqual([1]);
      const second = ledger.consume({ client: binding.connect(), topics: [topic.name] });
      await ledger.reached(3);
      expect(second.outcomes).not.toContain("duplicate");
    });

    test("aborts or awaits what is in flight when its partition is revoked, and the event takes effect once", async () => {
      await publish(binding, eventsOf(topic.name, 8, 2));
      const signals: AbortSignal[] = [];
      const first = ledger.consume({
        client: binding.connect(),
        topics: [topic.name],
        batchSize: 100,
        revokeGraceMs: 300,
        stopGraceMs: 300,
        before: async (_event, { signal }) => {
          signals.push(signal);
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
        },
      });
      // In all four partitions: a cooperative rebalance takes some of them only.
      await until(() => signals.length === 4, { timeoutMs: 20_000, what: "the handlers" });
      const second = ledger.consume({ client: binding.connect(), topics: [topic.name] });
      await until(() => first.revocations.length > 0 && signals.some(({ aborted }) => aborted), {
        timeoutMs: 20_000,
        what: "the abort",
      });
      const before = [...first.committed];
      await first.stop();
      const effects = await ledger.reached(16);
      await topic.drained("ledger");
      expect(effects).toHaveLength(16);
      expect(inversions(effects)).toEqual([]);
      expect(before).toEqual([]);
      expect(second.outcomes.filter((outcome) => outcome === "executed")).toHaveLength(16);
    });

    test("pauses while the database is away: no offset moves, no attempt is counted, and it goes on by itself", async () => {
      await using away = await databaseThatGoesAway(ledger);
      let attempts = 0;
      const consumer = ledger.consume({
        ...away.options,
        client: binding.connect(),
        topics: [topic.name],
        giveUpAfterMs: 100,
        retry: { attempts: 1 },
        before: async (_event, { attempt }) => void (attempts = Math.max(attempts, attempt)),
      });
      await until(() => consumer.stats().assigned === 4, { timeoutMs: 15_000, what: "the partitions" });
      away.cut();
      await publish(binding, eventsOf(topic.name, 10, 5));
      await until(() => consumer.stats().paused && away.refused() > 5, {
        timeoutMs: 20_000,
        what: "the pause",
      });
      expect(consumer.committed).toEqual([]);
      away.restore();
      const effects = await ledger.reached(50);
      await topic.drained("ledger");
      expect(consumer.resumes).toBeGreaterThan(0);
      expect(attempts).toBe(1);
      expect(inversions(effects)).toEqual([]);
      expect(consumer.outcomes.every((outcome) => outcome === "executed")).toBe(true);
    });
  });
}

/** The same database behind a pool that can be cut off: every connection is refused meanwhile. */
async function databaseThatGoesAway(ledger: Ledger): Promise<
  AsyncDisposable & {
    readonly options: { database: ReturnType<typeof import("idemkit/pg").fromPg> };
    cut(): void;
    restore(): void;
    refused(): number;
  }
> {
  const { createServer, connect } = await import("node:net");
  const { fromPg } = await import("idemkit/pg");
  const target = new URL(ledger.database.connectionString);
  const sockets = new Set<import("node:net").Socket>();
  let open = true;
  let refused = 0;
  const proxy = createServer((socket) => {
    if (!open) {
      refused += 1;
      socket.destroy();
      return;
    }
    const upstream = connect(Number(target.port), target.hostname);
    for (const side of [socket, upstream]) {
      sockets.add(side);
      side.on("error", () => {});
      side.on("close", () => [socket, upstream].forEach((each) => each.destroy()));
    }
    socket.pipe(upstream).pipe(socket);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const address = proxy.address();
  const url = new URL(ledger.database.connectionString);
  url.port = String(typeof address === "object" && address ? address.port : 0);
  const { createPool } = await import("../../../support/index.ts");
  const pool = createPool(url.href, { max: 8, connectionTimeoutMillis: 1000 });
  return {
    options: { database: fromPg(pool) },
    cut: () => {
      open = false;
      for (const socket of sockets) socket.destroy();
      sockets.clear();
    },
    restore: () => void (open = true),
    refused: () => refused,
    [Symbol.asyncDispose]: async () => {
      // The ledger stops its consumers after this; they need no more than an error by then.
      proxy.close();
      void pool.end().catch(() => {});
    },
  };
}
