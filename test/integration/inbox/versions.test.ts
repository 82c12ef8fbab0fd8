import { applyIfNewer, parkedInboxKeys } from "idemkit";
import type { EventMessage, NewerOptions } from "idemkit";
import { fromPg } from "idemkit/pg";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { until } from "../../support/index.ts";
import { event, nameOf, openBench, record, writeEffect } from "./harness.ts";
import type { Bench, Handlers } from "./harness.ts";

let bench: Bench;
beforeAll(async () => {
  bench = await openBench();
});
beforeEach(() =>
  bench.pool.query(`truncate effect, idemkit.dead_letter, idemkit.event_attempt, idemkit.parked_key,
    idemkit.parked_event, idemkit.aggregate_version`),
);
afterAll(() => bench.database.drop());

const hold = { onGap: "hold" } as const;
const accept = { onGap: "accept" } as const;

function v(version: number, key = "order-1"): EventMessage {
  return event(`${key === "order-1" ? "" : `${key}:`}v${version}`, { version, key });
}

test("a stale version is recorded and skipped", async () => {
  const inbox = bench.inbox(record, accept);
  const late = v(1);
  expect(await inbox.process(v(2))).toBe("executed");
  expect(await inbox.process(late)).toBe("stale");
  expect(await inbox.process(late)).toBe("duplicate");
  expect(await inbox.process(v(2))).toBe("stale");
  expect(await bench.effects()).toEqual(["v2"]);
});

test("accepted gaps: the newer version is applied, and what it overtook is stale, also within a batch", async () => {
  const inbox = bench.inbox(record, accept);
  expect(await inbox.processBatch([v(5), v(3), v(6)])).toEqual(["executed", "stale", "executed"]);
  expect(await bench.effects()).toEqual(["v5", "v6"]);
});

test("held gaps: events ahead wait, and are applied in order when the gap is filled", async () => {
  const inbox = bench.inbox(record, hold);
  expect(await inbox.processBatch([v(3), v(1), v(5)])).toEqual(["parked", "executed", "parked"]);
  expect(await parkedInboxKeys(fromPg(bench.pool))).toMatchObject([{ reason: "gap", events: 2 }]);
  expect(await inbox.process(v(2))).toBe("executed");
  expect(await bench.effects()).toEqual(["v1", "v2", "v3"]);
  expect(await inbox.process(v(6))).toBe("parked");
  expect(await inbox.process(v(4))).toBe("executed");
  expect(await bench.effects()).toEqual(["v1", "v2", "v3", "v4", "v5", "v6"]);
  expect(await bench.rows("select version::int, held from idemkit.aggregate_version")).toEqual([
    { version: 6, held: false },
  ]);
  expect(await parkedInboxKeys(fromPg(bench.pool))).toEqual([]);
});

test("an aggregate begins with its first version, or with any by choice", async () => {
  expect(await bench.inbox(record, hold).process(v(7, "a"))).toBe("parked");
  expect(await bench.inbox(record, { ...hold, firstVersion: 0 }).process(v(0, "b"))).toBe("executed");
  expect(await bench.inbox(record, { ...hold, firstVersion: 3 }).process(v(2, "c"))).toBe("stale");
  const any = bench.inbox(record, { ...hold, firstVersion: "any" });
  expect([await any.process(v(7, "d")), await any.process(v(9, "d")), await any.process(v(8, "d"))]).toEqual([
    "executed",
    "parked",
    "executed",
  ]);
  expect(await bench.effects()).toEqual(["b:v0", "d:v7", "d:v8", "d:v9"]);
});

test("types without a handler move the version on", async () => {
  const inbox = bench.inbox(record, hold);
  const viewed = event("viewed", { type: "payment.viewed", version: 2 });
  expect(await inbox.processBatch([v(1), viewed, v(3)])).toEqual(["executed", "executed", "executed"]);
});

test("a consumer that died between filling a gap and applying what waited makes up for it at the redelivery", async () => {
  const filler = v(1);
  await bench.inbox(record, hold).process(v(2));
  // What is left of that consumer: the filler committed, the version moved on, its offset didn't.
  await bench.inbox(record).process(filler);
  await bench.pool.query("update idemkit.aggregate_version set version = 1");
  expect(await bench.inbox(record, hold).process(filler)).toBe("duplicate");
  expect(await bench.effects()).toEqual(["v1", "v2"]);
});

test("who holds and who fills at the same time wait for each other, and nothing is left behind", async () => {
  const inbox = bench.inbox(record, hold);
  await inbox.process(v(1));
  const client = await bench.pool.connect();
  await client.query("begin");
  await client.query("select 1 from idemkit.aggregate_version for update");
  const both = [inbox.process(v(3)), inbox.process(v(2))];
  await until(async () => (await bench.rows(waits)).length === 2, { what: "both waiting for the version" });
  await client.query("commit");
  client.release();
  await Promise.all(both);
  expect(await bench.effects()).toEqual(["v1", "v2", "v3"]);
});

const waits =
  "select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%aggregate_version%'";

test("any order of arrival, in any batches, with repeats, ends in the order of versions", async () => {
  let run = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.shuffledSubarray([1, 2, 3, 4, 5, 6], { minLength: 6 }),
      fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 6, maxLength: 6 }),
      async (order, sizes) => {
        run += 1;
        const key = `run-${run}`;
        const events = new Map(order.map((version) => [version, v(version, key)]));
        const arrivals = order
          .flatMap((version) => [version, version])
          .map((version) => events.get(version) ?? v(0));
        const inbox = bench.inbox(record, hold);
        for (let at = 0, i = 0; at < arrivals.length; i += 1) {
          const size = sizes[i % sizes.length] ?? 1;
          await inbox.processBatch(arrivals.slice(at, at + size));
          at += size;
        }
        const mine = (await bench.effects()).filter((name) => name.startsWith(`${key}:`));
        expect(mine).toEqual([1, 2, 3, 4, 5, 6].map((version) => `${key}:v${version}`));
      },
    ),
    { numRuns: 25 },
  );
});

test("a held event that turns out to be poison becomes a dead letter; its followers wait for its replay", async () => {
  const bad = new Set(["v2"]);
  const handlers: Handlers = {
    "payment.charged": async ({ data }, { tx }) => {
      await writeEffect(tx, nameOf(data));
      if (bad.has(nameOf(data))) throw new Error("poison");
    },
  };
  const inbox = bench.inbox(handlers, { ...hold, retry: { attempts: 2, baseMs: 0 } });
  const second = v(2);
  await inbox.processBatch([second, v(3)]);
  expect(await inbox.process(v(1))).toBe("executed");
  expect(await bench.effects()).toEqual(["v1"]);
  expect(await bench.rows("select attempts from idemkit.dead_letter")).toEqual([{ attempts: 2 }]);
  bad.clear();
  expect(await inbox.replayDeadLetter(second.eventId)).toBe("executed");
  expect(await bench.effects()).toEqual(["v1", "v2", "v3"]);
});

function guarded(options: Partial<NewerOptions> = {}): Handlers {
  return {
    "payment.charged": async ({ data, key, aggregateVersion = 0 }, { tx }) => {
      const guard: NewerOptions = {
        aggregate: `account/${key}`,
        version: aggregateVersion,
        onGap: "hold",
        ...options,
      };
      await applyIfNewer(tx, guard, () => writeEffect(tx, nameOf(data)));
    },
  };
}

test("applyIfNewer in a handler: applied, stale, held, and applied in order when the gap is filled", async () => {
  const inbox = bench.inbox(guarded());
  expect(await inbox.process(v(1))).toBe("executed");
  expect(await inbox.process(v(1))).toBe("stale");
  expect(await inbox.processBatch([v(3), v(4)])).toEqual(["parked", "parked"]);
  expect(await inbox.process(v(2))).toBe("executed");
  expect(await bench.effects()).toEqual(["v1", "v2", "v3", "v4"]);
});

test("applyIfNewer with accepted gaps", async () => {
  const inbox = bench.inbox(guarded({ onGap: "accept" }));
  expect(await inbox.processBatch([v(4), v(2), v(5)])).toEqual(["executed", "stale", "executed"]);
  expect(await bench.effects()).toEqual(["v4", "v5"]);
});

test("a gap that will never be filled is given up by an operator", async () => {
  const inbox = bench.inbox(record, hold);
  await inbox.processBatch([v(1), v(3), v(4), v(7)]);
  const name = { topic: "payment", key: "order-1" };
  expect(await inbox.releaseParkedKey(name)).toEqual({ applied: 0, parked: 3 });
  expect(await inbox.releaseParkedKey(name, { acceptGaps: true })).toEqual({ applied: 3, parked: 0 });
  expect(await bench.effects()).toEqual(["v1", "v3", "v4", "v7"]);
  expect([await inbox.process(v(2)), await inbox.process(v(8))]).toEqual(["stale", "executed"]);
});

test("a version that the handler reads from the payload is held and applied like the header's", async () => {
  const inbox = bench.inbox({
    "payment.charged": async ({ data, key }, { tx }) => {
      const { name, version } = data as { name: string; version: number };
      await applyIfNewer(tx, { aggregate: key, version, onGap: "hold" }, () => writeEffect(tx, name));
    },
  });
  const numbered = (version: number): EventMessage => event("", { data: { name: `n${version}`, version } });
  expect(await inbox.processBatch([numbered(2), numbered(3)])).toEqual(["parked", "parked"]);
  expect(await inbox.process(numbered(1))).toBe("executed");
  expect(await bench.effects()).toEqual(["n1", "n2", "n3"]);
});

test("versions of two consumers are their own", async () => {
  expect(await bench.inbox(record, accept).process(v(2))).toBe("executed");
  expect(await bench.inbox(record, { ...accept, consumer: "mailer" }).process(v(1))).toBe("executed");
});
