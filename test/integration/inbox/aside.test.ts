import { applyIfNewer, deadLetters } from "idemkit";
import type { EventMessage } from "idemkit";
import { fromPg } from "idemkit/pg";
import { v7 } from "uuid";
import { afterEach, beforeEach, expect, test } from "vitest";

import { eventDayAt } from "../../../src/maintenance/event-day.ts";
import { makeDay } from "../../../src/maintenance/event-partitions.ts";
import { until } from "../../support/index.ts";
import { event, nameOf, openBench, record, writeEffect } from "./harness.ts";
import type { Bench } from "./harness.ts";

let bench: Bench;
beforeEach(async () => {
  bench = await openBench();
});
afterEach(() => bench.database.drop());

test.each(["read committed", "repeatable read"])(
  "a delivery that waits while its day is emptied is late, under %s",
  async (isolation) => {
    const pool = bench.database.pool({
      max: 4,
      options: `-c default_transaction_isolation=${isolation.replace(" ", String.raw`\ `)}`,
    });
    const day = eventDayAt(Date.now(), -20);
    await makeDay(fromPg(bench.pool), day);
    const old = event("old", { id: v7({ msecs: day.firstMs + 1000 }) });
    const inbox = bench.inbox(record, {}, pool);
    expect(await inbox.process(old)).toBe("executed");
    const client = await bench.pool.connect();
    await client.query("begin");
    await client.query(
      "update idemkit.processed_event_horizon set expired_before = to_timestamp($1::float8 / 1000)",
      [day.endMs],
    );
    await client.query(`truncate idemkit.${day.name}`);
    const again = inbox.process(old);
    await until(async () => {
      const waiting = await bench.rows(
        "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
      );
      return waiting.length > 0;
    });
    await client.query("commit");
    client.release();
    expect(await again).toBe("dead-lettered");
    expect(await bench.effects()).toEqual(["old"]);
  },
);

test("more late events than a transaction may send copies of are put away one by one", async () => {
  await bench.rows("update idemkit.processed_event_horizon set expired_before = now() - interval '1 day'");
  const inbox = bench.inbox(record, { deadLetters: { topic: true } });
  const fiveDaysAgo = Date.now() - 5 * 86_400_000;
  const events = Array.from({ length: 1001 }, (_, n) =>
    event("late", { key: `order-${n}`, id: v7({ msecs: fiveDaysAgo + n }) }),
  );
  expect(new Set(await inbox.processBatch(events))).toEqual(new Set(["dead-lettered"]));
});

test("a handler's own stale verdict moves the inbox's guard on", async () => {
  const inbox = bench.inbox(
    {
      "payment.charged": async ({ data }, { tx }) => {
        const { name, own } = data as { name: string; own: number };
        const guard = { aggregate: "account/1", version: own, onGap: "accept" } as const;
        await applyIfNewer(tx, guard, () => writeEffect(tx, name));
      },
    },
    { onGap: "hold" },
  );
  const versions = [
    [1, 10],
    [2, 9],
    [3, 11],
  ] as const;
  const outcomes: string[] = [];
  for (const [version, own] of versions) {
    outcomes.push(await inbox.process(event("", { version, data: { name: `v${version}`, own } })));
  }
  expect(outcomes).toEqual(["executed", "stale", "executed"]);
  expect(await bench.effects()).toEqual(["v1", "v3"]);
});

test("an event that was held sets free what waits behind a gap of another aggregate", async () => {
  const inbox = bench.inbox({
    "payment.charged": async ({ data }, { tx }) => {
      const { name, on } = data as { name: string; on: [string, number][] };
      const guarded = async (at: number): Promise<void> => {
        const [aggregate, version] = on[at] ?? [];
        if (aggregate === undefined || version === undefined) return writeEffect(tx, name);
        await applyIfNewer(tx, { aggregate, version, onGap: "hold" }, () => guarded(at + 1));
      };
      await guarded(0);
    },
  });
  const made = (name: string, ...on: [string, number][]): EventMessage => event("", { data: { name, on } });
  expect(await inbox.process(made("b2", ["b", 2]))).toBe("parked");
  expect(await inbox.process(made("a2b1", ["a", 2], ["b", 1]))).toBe("parked");
  expect(await inbox.process(made("a1", ["a", 1]))).toBe("executed");
  expect(await bench.effects()).toEqual(["a1", "a2b1", "b2"]);
});

test("what filled a gap is told of only when what waited behind it has been tried, so that it comes again", async () => {
  let isBroken = true;
  const inbox = bench.inbox(
    {
      "payment.charged": async ({ data }, { tx }) => {
        if (isBroken && nameOf(data) === "v2") throw new Error("broken");
        await writeEffect(tx, nameOf(data));
      },
    },
    { onGap: "hold", retry: { attempts: 5, perDelivery: 1, baseMs: 0 } },
  );
  expect(await inbox.process(event("v2", { version: 2 }))).toBe("parked");
  const told: string[] = [];
  const batch = [event("v1", { version: 1 }), event("other", { key: "order-2", version: 1 })];
  const onOutcome = (outcome: string): void => void told.push(outcome);
  const delivered = inbox.processBatch(batch, { onOutcome });
  await expect(delivered).rejects.toMatchObject({ code: "event_handler_failed" });
  expect(told).toEqual([]);
  isBroken = false;
  expect(await inbox.processBatch(batch, { onOutcome })).toEqual(["duplicate", "duplicate"]);
  expect((await bench.effects()).toSorted()).toEqual(["other", "v1", "v2"]);
});

test.each<Partial<Record<keyof EventMessage, unknown>>>([
  { eventId: undefined },
  { type: undefined },
  { key: undefined },
  { key: "half a pair \uD800" },
  { payload: "text" },
  { headers: undefined },
  { aggregateVersion: 1.5 },
])("what is malformed by %j is put away", async (broken) => {
  const inbox = bench.inbox(record);
  const message = { ...event("a"), ...broken } as EventMessage;
  await expect(inbox.process(message)).rejects.toMatchObject({ code: "event_malformed" });
  expect(await inbox.deadLetter(message, { reason: "malformed" })).toBe("dead-lettered");
  expect(await deadLetters(fromPg(bench.pool))).toMatchObject([{ reason: "malformed" }]);
});

test("a callback that throws leaves no connection behind", async () => {
  const pool = bench.database.pool({ max: 1, connectionTimeoutMillis: 300 });
  const onWarning = (): never => {
    throw new Error("the logger is broken");
  };
  const inbox = bench.inbox(record, { giveUpAfterMs: 500, onWarning }, pool);
  const future = event("a", { id: v7({ msecs: Date.now() + 3_600_000 }) });
  expect(await inbox.process(future)).toBe("executed");
  expect(await inbox.process(event("b"))).toBe("executed");
});
