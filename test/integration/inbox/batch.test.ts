import type { EventMessage, EventOutcome } from "idemkit";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { until } from "../../support/index.ts";
import { event, nameOf, openBench, record, writeEffect } from "./harness.ts";
import type { Bench, Handlers } from "./harness.ts";

let bench: Bench;
beforeAll(async () => {
  bench = await openBench();
});
beforeEach(() => bench.pool.query("truncate effect, idemkit.dead_letter, idemkit.event_attempt"));
afterAll(() => bench.database.drop());

function batch(count: number, keys = 20): EventMessage[] {
  return Array.from({ length: count }, (_, i) => event(`e${i}`, { key: `order-${i % keys}` }));
}

function failingFor(name: string): Handlers {
  return {
    "payment.charged": async ({ data }, { tx }) => {
      await writeEffect(tx, nameOf(data));
      if (nameOf(data) === name) throw new Error("poison");
    },
  };
}

test("a batch is one transaction, in order, and a batch that comes again is nothing but duplicates", async () => {
  const inbox = bench.inbox({
    "payment.charged": async ({ data }, { tx }) => {
      await tx.query("insert into effect (consumer, event) values ($1, $2)", ["ledger", nameOf(data)]);
      await tx.query("insert into effect (consumer, event) values ('xid', pg_current_xact_id()::text)");
    },
  });
  const events = batch(200);
  expect(await inbox.processBatch(events)).toEqual(events.map(() => "executed"));
  expect(await bench.effects()).toEqual(events.map((_, i) => `e${i}`));
  expect(new Set(await bench.effects("xid")).size).toBe(1);
  expect(await inbox.processBatch(events)).toEqual(events.map(() => "duplicate"));
  expect(await inbox.processBatch([])).toEqual([]);
});

test("an event that is twice in a batch takes effect once", async () => {
  const [first, second] = batch(2);
  if (first === undefined || second === undefined) throw new Error("no events");
  const again = { ...first, eventId: first.eventId.toUpperCase() };
  const outcomes = await bench.inbox(record).processBatch([first, second, again]);
  expect(outcomes).toEqual(["executed", "executed", "duplicate"]);
});

test("a poison message in a batch of 200: 199 applied, one dead letter, each key in order", async () => {
  const events = batch(200);
  const told: EventOutcome[] = [];
  const outcomes = await bench
    .inbox(failingFor("e77"))
    .processBatch(events, { onOutcome: (outcome, index) => (told[index] = outcome) });
  expect(outcomes).toEqual(events.map((_, i) => (i === 77 ? "dead-lettered" : "executed")));
  expect(told).toEqual(outcomes);
  const applied = await bench.effects();
  expect(applied).toHaveLength(199);
  for (let key = 0; key < 20; key += 1) {
    const places = applied.map((name) => Number(name.slice(1))).filter((i) => i % 20 === key);
    expect(places).toEqual(places.toSorted((a, b) => a - b));
  }
  expect(await bench.rows("select original_event_id as id, attempts from idemkit.dead_letter")).toEqual([
    { id: events[77]?.eventId, attempts: 5 },
  ]);
  expect(await bench.inbox(record).processBatch(events)).toEqual(events.map(() => "duplicate"));
});

test("while a poison message pauses between its tries, other keys are settled", async () => {
  const events = batch(40);
  const settled: number[] = [];
  const given = new AbortController();
  const slow = bench.inbox(failingFor("e7"), {
    retry: { baseMs: 3_600_000, maxMs: 3_600_000 },
    splitConcurrency: 1,
  });
  const ended = slow.processBatch(events, {
    signal: given.signal,
    onOutcome: (_, index) => settled.push(index),
  });
  await until(() => settled.length === 38, { what: "all but the poison and its follower" });
  expect(settled).not.toContain(7);
  expect(settled).not.toContain(27);
  given.abort();
  await expect(ended).rejects.toMatchObject({ code: "inbox_aborted" });
});

test("a failure in company is charged to nobody", async () => {
  const attempts: number[] = [];
  let calls = 0;
  const inbox = bench.inbox(
    {
      "payment.charged": async ({ data }, { tx, attempt }) => {
        calls += 1;
        if (calls === 2) throw new Error("only in company");
        attempts.push(attempt);
        await writeEffect(tx, nameOf(data));
      },
    },
    { retry: { attempts: 1 } },
  );
  expect(await inbox.processBatch(batch(3))).toEqual(["executed", "executed", "executed"]);
  expect(new Set(attempts)).toEqual(new Set([1]));
});

test("a swallowed error of one handler doesn't poison the others of its batch", async () => {
  const inbox = bench.inbox(
    {
      "payment.charged": async ({ data }, { tx }) => {
        const failing = nameOf(data) === "e1";
        await (failing ? tx.query("select 1 / 0").catch(() => {}) : writeEffect(tx, nameOf(data)));
      },
    },
    { retry: { attempts: 1 } },
  );
  expect(await inbox.processBatch(batch(4))).toEqual(["executed", "dead-lettered", "executed", "executed"]);
  expect((await bench.effects()).toSorted()).toEqual(["e0", "e2", "e3"]);
});

test("batches insert sorted: those with the same events in other orders queue up behind each other", async () => {
  const events = batch(9);
  const middle = await bench.pool.connect();
  const { rows } = await middle.query<{ pid: number }>("select pg_backend_pid() as pid");
  await middle.query("begin");
  await middle.query("insert into idemkit.processed_event (event_id, consumer_name) values ($1, 'ledger')", [
    events[4]?.eventId,
  ]);
  const inbox = bench.inbox(record);
  const both = [inbox.processBatch(events), inbox.processBatch(events.toReversed())];
  const blockers = "select pg_blocking_pids(pid) as by from pg_stat_activity where wait_event_type = 'Lock'";
  await until(async () => (await bench.rows(blockers)).length === 2, { what: "both batches waiting" });
  const waiting = (await bench.rows(blockers)).map(({ by }) => (by as number[]).includes(rows[0]?.pid ?? 0));
  // Unsorted, each would have come to the middle from its own side, and hold what the other wants next.
  expect(waiting.filter(Boolean)).toHaveLength(1);
  await middle.query("rollback");
  middle.release();
  const outcomes = (await Promise.all(both)).flat();
  expect(outcomes.filter((outcome) => outcome === "executed")).toHaveLength(9);
  expect(await bench.effects()).toHaveLength(9);
});

test("stepped by hand: unsorted inserts of the same ids deadlock, which is why the claim sorts", async () => {
  const [a, b] = [event("a").eventId, event("b").eventId];
  const insert =
    "insert into idemkit.processed_event (event_id, consumer_name) values ($1, 'by-hand') on conflict do nothing";
  const one = await bench.pool.connect();
  const two = await bench.pool.connect();
  await one.query("begin; set local deadlock_timeout = '10ms'");
  await two.query("begin; set local deadlock_timeout = '10ms'");
  await one.query(insert, [a]);
  await two.query(insert, [b]);
  const ended = await Promise.allSettled([one.query(insert, [b]), two.query(insert, [a])]);
  expect(
    ended.map((each) => (each.status === "rejected" ? (each.reason as { code: string }).code : "waited")),
  ).toContain("40P01");
  for (const client of [one, two]) {
    await client.query("rollback");
    client.release();
  }
});

test("two consumers of one name share the events between them, each exactly once", async () => {
  const events = batch(120, 12);
  const pools = [bench.database.pool({ max: 2 }), bench.database.pool({ max: 2 })];
  const outcomes = await Promise.all(
    pools.map(async (pool) => {
      const inbox = bench.inbox(record, {}, pool);
      const all: EventOutcome[] = [];
      for (let at = 0; at < events.length; at += 10) {
        all.push(...(await inbox.processBatch(events.slice(at, at + 10))));
      }
      return all;
    }),
  );
  expect(outcomes.flat().filter((outcome) => outcome === "executed")).toHaveLength(120);
  expect((await bench.effects()).toSorted()).toEqual(events.map((_, i) => `e${i}`).toSorted());
});
