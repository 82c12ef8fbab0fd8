import { applyIfNewer, derivedEventId } from "idemkit";
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { v4, v7 } from "uuid";

import { until } from "../../support/index.ts";
import { event, nameOf, openBench, record, writeEffect } from "./harness.ts";
import type { Bench } from "./harness.ts";

let bench: Bench;
beforeAll(async () => {
  bench = await openBench();
});
beforeEach(() => bench.pool.query("truncate effect, idemkit.dead_letter, idemkit.event_attempt"));
afterAll(() => bench.database.drop());

test("an event takes effect once, however often it comes", async () => {
  const inbox = bench.inbox(record);
  const charged = event("a");
  expect(await inbox.process(charged)).toBe("executed");
  expect(await inbox.process(charged)).toBe("duplicate");
  expect(await inbox.process({ ...charged, eventId: charged.eventId.toUpperCase() })).toBe("duplicate");
  expect(await bench.effects()).toEqual(["a"]);
});

test("two consumers of one database each get the event", async () => {
  const charged = event("a");
  const mailer = bench.inbox(
    { "payment.charged": async ({ data }, { tx }) => writeEffect(tx, nameOf(data), "mailer") },
    { consumer: "mailer" },
  );
  expect(await bench.inbox(record).process(charged)).toBe("executed");
  expect(await mailer.process(charged)).toBe("executed");
  expect(await mailer.process(charged)).toBe("duplicate");
  expect([await bench.effects(), await bench.effects("mailer")]).toEqual([["a"], ["a"]]);
});

test("the record and the effects are one transaction: a failed try leaves neither", async () => {
  const seen: unknown[] = [];
  const charged = event("a");
  const inbox = bench.inbox({
    "payment.charged": async ({ data, eventId }, { tx, attempt }) => {
      await writeEffect(tx, nameOf(data));
      seen.push(await bench.rows("select 1 from idemkit.processed_event where event_id = $1", [eventId]));
      if (attempt < 3) throw new Error("not yet");
    },
  });
  expect(await inbox.process(charged)).toBe("executed");
  expect(seen).toEqual([[], [], []]);
  expect(await bench.effects()).toEqual(["a"]);
  expect(await bench.rows("select * from idemkit.event_attempt")).toEqual([]);
});

test("a duplicate waits for the transaction that is recording the event, and is not handled", async () => {
  const inbox = bench.inbox(record);
  const charged = event("a");
  const first = await bench.pool.connect();
  await first.query("begin");
  await first.query("insert into idemkit.processed_event (event_id, consumer_name) values ($1, 'ledger')", [
    charged.eventId,
  ]);
  const second = inbox.process(charged);
  await until(async () => (await bench.rows(waiting)).length === 1, { what: "the duplicate waiting" });
  await first.query("commit");
  first.release();
  expect(await second).toBe("duplicate");
  expect(await bench.effects()).toEqual([]);
});

const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%processed_event%'`;

test("a duplicate takes the event over when the transaction that was recording it rolls back", async () => {
  const inbox = bench.inbox(record);
  const charged = event("a");
  const first = await bench.pool.connect();
  await first.query("begin");
  await first.query("insert into idemkit.processed_event (event_id, consumer_name) values ($1, 'ledger')", [
    charged.eventId,
  ]);
  const second = inbox.process(charged);
  await until(async () => (await bench.rows(waiting)).length === 1, { what: "the duplicate waiting" });
  await first.query("rollback");
  first.release();
  expect(await second).toBe("executed");
});

test("the wait for the same event elsewhere is bounded, told as the infrastructure's, and charged to nobody", async () => {
  const inbox = bench.inbox(record, { lockTimeoutMs: 30, giveUpAfterMs: 100 });
  const charged = event("a");
  const first = await bench.pool.connect();
  await first.query("begin");
  await first.query("insert into idemkit.processed_event (event_id, consumer_name) values ($1, 'ledger')", [
    charged.eventId,
  ]);
  await expect(inbox.process(charged)).rejects.toMatchObject({ code: "inbox_unavailable", retryable: true });
  expect(await bench.rows("select * from idemkit.event_attempt")).toEqual([]);
  await first.query("rollback");
  first.release();
  expect(await inbox.process(charged)).toBe("executed");
});

test("a unique violation of the handler is its own failure, whatever the server calls it, and never a duplicate", async () => {
  let runs = 0;
  const violation = "do $$ begin raise exception 'doppelter Schlüsselwert' using errcode = '23505'; end $$";
  const inbox = bench.inbox(
    {
      "payment.charged": async ({ data }, { tx }) => {
        runs += 1;
        await writeEffect(tx, nameOf(data));
        if (runs === 1) await tx.query(violation);
      },
    },
    { retry: { attempts: 2 } },
  );
  const charged = event("a");
  expect([await inbox.process(charged), await inbox.process(charged)]).toEqual(["executed", "duplicate"]);
  expect(runs).toBe(2);
});

test("a duplicate raises no error in the server, so its language can't matter", async () => {
  const pool = bench.database.pool({ max: 1 });
  const inbox = bench.inbox(record, {}, pool);
  const client = await pool.connect();
  const notices: unknown[] = [];
  client.on("notice", (notice) => notices.push(notice));
  client.release();
  const charged = event("a");
  const failed = vi.spyOn(client, "query");
  expect([await inbox.process(charged), await inbox.process(charged)]).toEqual(["executed", "duplicate"]);
  const ended = await Promise.allSettled(failed.mock.results.map(({ value }) => value as Promise<unknown>));
  expect(ended.filter(({ status }) => status === "rejected")).toEqual([]);
  expect(ended.length).toBeGreaterThan(4);
  expect(notices).toEqual([]);
});

test("types without a handler are recorded and skipped, or dead letters by choice", async () => {
  const viewed = event("a", { type: "constructor" });
  const inbox = bench.inbox(record);
  expect([await inbox.process(viewed), await inbox.process(viewed)]).toEqual(["executed", "duplicate"]);
  const strict = bench.inbox(record, { unknownTypes: "dead-letter" });
  expect(await strict.process(event("b", { type: "order.viewed" }))).toBe("dead-lettered");
  expect(await bench.rows("select reason, type from idemkit.dead_letter")).toEqual([
    { reason: "unknown-type", type: "order.viewed" },
  ]);
});

test("ids that are no UUIDv7 are recorded beside the days", async () => {
  const inbox = bench.inbox(record);
  const before = (await bench.rows("select 1 from idemkit.processed_event_derived")).length;
  const ids = [v4(), derivedEventId("psp", "evt_1"), v7()];
  for (const id of ids) {
    expect(await inbox.process(event("a", { id }))).toBe("executed");
    expect(await inbox.process(event("a", { id }))).toBe("duplicate");
  }
  expect((await bench.rows("select 1 from idemkit.processed_event_derived")).length - before).toBe(2);
});

test("a message that can't be recorded is refused by name, and can be put away", async () => {
  const inbox = bench.inbox(record);
  const nameless = { ...event("a"), eventId: "evt_1", key: "a\0b" };
  await expect(inbox.process(nameless)).rejects.toMatchObject({
    code: "event_malformed",
    details: { at: "eventId" },
  });
  await expect(inbox.process({ ...nameless, eventId: v7() })).rejects.toMatchObject({
    details: { at: "key" },
  });
  const reason = { reason: "malformed", error: new Error("no id") };
  expect(await inbox.deadLetter(nameless, reason)).toBe("dead-lettered");
  expect(await inbox.deadLetter(nameless, reason)).toBe("duplicate");
});

test("a payload that is not JSON is poison at the first look", async () => {
  const broken = { ...event("a"), payload: Buffer.from("{") };
  expect(await bench.inbox(record, { retry: { attempts: 1 } }).process(broken)).toBe("dead-lettered");
});

test("applyIfNewer outside of a handler is an error of its own", async () => {
  const guard = applyIfNewer(bench.pool, { aggregate: "a", version: 1, onGap: "accept" }, () => {});
  await expect(guard).rejects.toMatchObject({ code: "inbox_transaction_unknown" });
});

test("a database without idemkit's tables is told so", async () => {
  await using empty = await (await import("../../support/index.ts")).createDatabase({ empty: true });
  await expect(bench.inbox(record, {}, empty.pool()).process(event("a"))).rejects.toMatchObject({
    code: "schema_missing",
  });
});
