import { deadLetters, discardDeadLetter, parkedInboxKeys } from "idemkit";
import { fromPg } from "idemkit/pg";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { until } from "../../support/index.ts";
import { event, nameOf, openBench, writeEffect } from "./harness.ts";
import type { Bench, Handlers } from "./harness.ts";

let bench: Bench;
beforeAll(async () => {
  bench = await openBench();
});
beforeEach(() =>
  bench.pool.query(
    "truncate effect, idemkit.dead_letter, idemkit.event_attempt, idemkit.parked_key, idemkit.parked_event",
  ),
);
afterAll(() => bench.database.drop());

/** Fails for the names that are in the set at the time. */
function failing(names: Set<string>): Handlers {
  return {
    "payment.charged": async ({ data }, { tx }) => {
      await writeEffect(tx, nameOf(data));
      if (names.has(nameOf(data))) throw new Error(`no account for ${nameOf(data)}`);
    },
  };
}

const park = { poison: "park", retry: { attempts: 2, baseMs: 0 } } as const;

test("a parked key holds its followers in order until it is released; other keys go on", async () => {
  const bad = new Set(["a1"]);
  const inbox = bench.inbox(failing(bad), park);
  expect(await inbox.process(event("a1", { key: "a" }))).toBe("parked");
  expect(await inbox.process(event("b1", { key: "b" }))).toBe("executed");
  const followers = [event("a2", { key: "a" }), event("b2", { key: "b" }), event("a3", { key: "a" })];
  expect(await inbox.processBatch(followers)).toEqual(["parked", "executed", "parked"]);
  expect(await inbox.processBatch(followers)).toEqual(["duplicate", "duplicate", "duplicate"]);
  expect(await parkedInboxKeys(fromPg(bench.pool))).toMatchObject([
    {
      consumer: "ledger",
      topic: "payment",
      key: "a",
      reason: "poison",
      events: 3,
      error: "Error: no account for a1",
    },
  ]);

  expect(await inbox.releaseParkedKey({ topic: "payment", key: "a" })).toEqual({ applied: 0, parked: 3 });
  bad.clear();
  expect(await inbox.releaseParkedKey({ topic: "payment", key: "a" })).toEqual({ applied: 3, parked: 0 });
  expect(await inbox.process(event("a4", { key: "a" }))).toBe("executed");
  expect(await bench.effects()).toEqual(["b1", "b2", "a1", "a2", "a3", "a4"]);
  expect(await parkedInboxKeys(fromPg(bench.pool))).toEqual([]);
});

test("a follower that comes while the key is being opened is applied behind those that were parked", async () => {
  const bad = new Set(["a1"]);
  let reached = (): void => {};
  let goOn = (): void => {};
  const atA2 = new Promise<void>((resolve) => (reached = resolve));
  const gate = new Promise<void>((resolve) => (goOn = resolve));
  const { "payment.charged": handle } = failing(bad);
  const inbox = bench.inbox(
    {
      "payment.charged": async (received, context) => {
        if (nameOf(received.data) === "a2" && !bad.has("a1")) {
          reached();
          await gate;
        }
        await handle?.(received, context);
      },
    },
    park,
  );
  await inbox.process(event("a1", { key: "a" }));
  await inbox.process(event("a2", { key: "a" }));
  bad.clear();
  const released = inbox.releaseParkedKey({ topic: "payment", key: "a" });
  await atA2;
  const follower = inbox.process(event("a3", { key: "a" }));
  await until(async () => (await bench.rows(lockWaits)).length > 0, {
    what: "the follower waiting for the release",
  });
  goOn();
  expect(await released).toMatchObject({ parked: 0 });
  await follower;
  // Either it was parked in time and released as the last, or it came behind the end of the release.
  expect(await bench.effects()).toEqual(["a1", "a2", "a3"]);
  expect(await parkedInboxKeys(fromPg(bench.pool))).toEqual([]);
});

const lockWaits = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%parked%'";

test("dead letters are listed, replayed once, and discarded", async () => {
  const bad = new Set(["a", "b"]);
  const inbox = bench.inbox(failing(bad), { retry: { attempts: 1 } });
  const [first, second] = [event("a"), event("b")];
  expect(await inbox.processBatch([first, second])).toEqual(["dead-lettered", "dead-lettered"]);
  const database = fromPg(bench.pool);
  expect(await deadLetters(database, { consumer: "ledger" })).toMatchObject([
    { eventId: first.eventId, reason: "poison", attempts: 1, error: "Error: no account for a" },
    { eventId: second.eventId },
  ]);
  expect(await inbox.replayDeadLetter(first.eventId)).toBe("dead-lettered");
  expect(await deadLetters(database)).toMatchObject([{ attempts: 2 }, { attempts: 1 }]);
  bad.clear();
  const both = await Promise.all([
    inbox.replayDeadLetter(first.eventId),
    inbox.replayDeadLetter(first.eventId),
  ]);
  expect(new Set(both)).toEqual(new Set(["executed", undefined]));
  expect(await discardDeadLetter(database, { consumer: "ledger", eventId: second.eventId })).toBe(true);
  expect(await discardDeadLetter(database, { consumer: "ledger", eventId: second.eventId })).toBe(false);
  expect(await inbox.processBatch([first, second])).toEqual(["duplicate", "duplicate"]);
  expect(await bench.effects()).toEqual(["a"]);
});

test("a dead letter goes to its topic in the same transaction, naming the consumer and the event", async () => {
  const inbox = bench.inbox(failing(new Set(["a"])), {
    retry: { attempts: 1 },
    deadLetters: { topic: true },
  });
  const charged = { ...event("a", { version: 7 }), headers: { region: "eu" } };
  expect(await inbox.process(charged)).toBe("dead-lettered");
  const [sent] = await bench.rows(
    "select topic, key, type, payload, headers, aggregate_version from idemkit.outbox_event",
  );
  expect(sent).toMatchObject({ topic: "payment.dead-letter", key: "order-1", type: "payment.charged" });
  expect(Buffer.from(sent?.["payload"] as Uint8Array).toString()).toBe('{"name":"a"}');
  const headers =
    typeof sent?.["headers"] === "string" ? (JSON.parse(sent["headers"]) as unknown) : sent?.["headers"];
  expect(headers).toEqual({
    region: "eu",
    dead_letter_consumer: "ledger",
    dead_letter_event_id: charged.eventId,
    dead_letter_reason: "poison",
  });
});
