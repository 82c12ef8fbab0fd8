import { retainProcessedEvents } from "idemkit";
import { fromPg } from "idemkit/pg";
import type pg from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import { v7 } from "uuid";

import { eventDayAt } from "../../../src/maintenance/event-day.ts";
import { dropDay, expireDay, makeDay } from "../../../src/maintenance/event-partitions.ts";
import { until } from "../../support/index.ts";
import { event, openBench, record } from "../inbox/harness.ts";
import type { Bench } from "../inbox/harness.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

let bench: Bench;
let database: ReturnType<typeof fromPg<pg.Pool>>;
beforeEach(async () => {
  bench = await openBench();
  database = fromPg(bench.pool);
});
afterEach(() => bench.database.drop());

function idAt(ms: number): string {
  return v7({ msecs: ms });
}

/** A day in the past, by days before today. */
function ago(days: number): ReturnType<typeof eventDayAt> {
  return eventDayAt(Date.now(), -days);
}

async function partitionOf(id: string): Promise<unknown> {
  const sql = "select tableoid::regclass::text as name from idemkit.processed_event where event_id = $1";
  return (await bench.rows(sql, [id])).map(({ name }) => String(name).replace("idemkit.", ""))[0];
}

async function put(id: string, processedAt = "now()"): Promise<void> {
  await bench.pool.query(
    `insert into idemkit.processed_event (event_id, consumer_name, processed_at) values ($1, 'ledger', ${processedAt})`,
    [id],
  );
}

test("the first round makes the days ahead, and a second one finds nothing to do", async () => {
  const round = await retainProcessedEvents(database);
  expect(round.made).toEqual([0, 1, 2, 3].map((offset) => eventDayAt(Date.now(), offset).name));
  expect(await retainProcessedEvents(database)).toEqual({
    made: [],
    expired: [],
    dropped: [],
    postponed: [],
    swept: 0,
  });
  const id = idAt(Date.now());
  await bench.inbox(record).process(event("a", { id }));
  expect(await partitionOf(id)).toBe(eventDayAt(Date.now()).name);
});

test("an event on its way to the default partition while its day is made there is recorded in the day", async () => {
  const day = eventDayAt(Date.now());
  const maker = await bench.pool.connect();
  await maker.query("begin");
  await maker.query("lock table idemkit.processed_event_default in access exclusive mode");
  const charged = event("a", { id: idAt(Date.now()) });
  const inbox = bench.inbox(record, { retry: { attempts: 1 } });
  const delivered = inbox.process(charged);
  await until(async () => (await bench.rows(waitsForDefault)).length === 1, { what: "the event waiting" });
  await maker.query(`create table idemkit.${day.name} (like idemkit.processed_event including all)`);
  await maker.query(`alter table idemkit.processed_event attach partition idemkit.${day.name}
    for values from ('${day.from}') to ('${day.to}')`);
  await maker.query("commit");
  maker.release();
  expect(await delivered).toBe("executed");
  expect(await partitionOf(charged.eventId)).toBe(day.name);
});

const waitsForDefault =
  "select from pg_locks where relation = 'idemkit.processed_event_default'::regclass and not granted";

test("rows that are in the default partition move to their day when it is made, and go on suppressing duplicates", async () => {
  const early = event("a");
  const inbox = bench.inbox(record);
  await inbox.process(early);
  expect(await partitionOf(early.eventId)).toBe("processed_event_default");
  await retainProcessedEvents(database);
  expect(await partitionOf(early.eventId)).toBe(eventDayAt(Date.now()).name);
  expect(await inbox.process(early)).toBe("duplicate");
});

test("a day expires by truncation once retention, delivery lag and a margin are over, and is dropped a round later", async () => {
  for (const days of [17, 15]) await makeDay(database, ago(days));
  const [old, kept] = [idAt(ago(17).firstMs), idAt(ago(15).firstMs)];
  for (const id of [old, kept]) await put(id);
  expect((await retainProcessedEvents(database)).expired).toEqual([ago(17).name]);
  expect([await partitionOf(old), await partitionOf(kept)]).toEqual([undefined, ago(15).name]);
  expect(
    await bench.rows("select n_dead_tup from pg_stat_user_tables where relname = $1", [ago(17).name]),
  ).toEqual([{ n_dead_tup: "0" }]);
  expect(await retainProcessedEvents(database)).toMatchObject({ expired: [], dropped: [ago(17).name] });
});

test("expiry goes on beside an open insert, and doesn't keep deliveries waiting", async () => {
  await makeDay(database, ago(20));
  await retainProcessedEvents(database, { retentionHours: 10_000 });
  await put(idAt(ago(20).firstMs));
  const open = await bench.pool.connect();
  await open.query("begin");
  await open.query("insert into idemkit.processed_event (event_id, consumer_name) values ($1, 'open')", [
    v7(),
  ]);
  expect((await retainProcessedEvents(database)).expired).toEqual([ago(20).name]);
  const round = await retainProcessedEvents(database);
  expect(round).toMatchObject({ dropped: [], postponed: [ago(20).name] });
  expect(await bench.inbox(record).process(event("a"))).toBe("executed");
  await open.query("rollback");
  open.release();
  expect((await retainProcessedEvents(database)).dropped).toEqual([ago(20).name]);
});

test("a day that can't be expired yet keeps the younger ones waiting, so that none is dropped with its records", async () => {
  await makeDay(database, ago(30));
  await makeDay(database, ago(29));
  const [older, younger] = [idAt(ago(30).firstMs), idAt(ago(29).firstMs)];
  await put(older);
  await put(younger);
  const open = await bench.pool.connect();
  await open.query("begin");
  await open.query("insert into idemkit.processed_event (event_id, consumer_name) values ($1, 'open')", [
    older,
  ]);
  expect(await retainProcessedEvents(database)).toMatchObject({ expired: [], postponed: [ago(30).name] });
  await open.query("commit");
  open.release();
  expect(await retainProcessedEvents(database)).toMatchObject({
    expired: [ago(30).name, ago(29).name],
    dropped: [],
  });
});

test("making a day ahead goes on beside an open insert into another", async () => {
  await makeDay(database, eventDayAt(Date.now()));
  const open = await bench.pool.connect();
  await open.query("begin");
  await open.query("insert into idemkit.processed_event (event_id, consumer_name) values ($1, 'open')", [
    v7(),
  ]);
  expect(await makeDay(database, eventDayAt(Date.now(), 1))).toBe("done");
  await open.query("rollback");
  open.release();
});

test("stepped by hand: an open insert blocks CREATE … PARTITION OF and a plain DETACH, and both block all others", async () => {
  await makeDay(database, ago(20));
  const open = await bench.pool.connect();
  await open.query("begin");
  await open.query("insert into idemkit.processed_event (event_id, consumer_name) values ($1, 'open')", [
    v7(),
  ]);
  const blocked = [
    `create table idemkit.x partition of idemkit.processed_event for values from ('00000000-0000-0000-0000-000000000000') to ('00000000-0000-0000-0000-000000000001')`,
    `alter table idemkit.processed_event detach partition idemkit.${ago(20).name}`,
  ];
  for (const sql of blocked) {
    await expect(bench.pool.query(`begin; set local lock_timeout = '50ms'; ${sql}`)).rejects.toMatchObject({
      code: "55P03",
    });
    await bench.pool.query("rollback");
  }
  await open.query("rollback");
  open.release();
  await expect(
    bench.pool.query(
      `alter table idemkit.processed_event detach partition idemkit.${ago(20).name} concurrently`,
    ),
  ).rejects.toMatchObject({ code: "55000" });
});

test("after expiry a late id is a dead letter; by choice it is processed with a warning, and is remembered", async () => {
  await makeDay(database, ago(20));
  await expireDay(database, ago(20));
  const late = event("late", { id: idAt(ago(20).firstMs + 5) });
  expect(await bench.inbox(record).process(event("x", { id: idAt(ago(20).firstMs + 6) }))).toBe(
    "dead-lettered",
  );
  expect(await bench.rows("select reason from idemkit.dead_letter")).toEqual([{ reason: "late-id" }]);
  const warnings: string[] = [];
  const lenient = bench.inbox(record, { lateIds: "process", onWarning: (message) => warnings.push(message) });
  expect(await lenient.process(late)).toBe("executed");
  expect(warnings).toEqual([expect.stringContaining("older than all records")]);
  // It lies in a day that is not truncated again: it is kept when that is dropped, and then swept by its own time.
  expect(await retainProcessedEvents(database)).toMatchObject({ expired: [], dropped: [ago(20).name] });
  expect(await partitionOf(late.eventId)).toBe("processed_event_default");
  expect(await lenient.process(late)).toBe("duplicate");
});

test("an id in the future is processed with a warning and recognised; by choice it is a dead letter", async () => {
  const ahead = event("ahead", { id: idAt(Date.now() + 40 * dayMs) });
  const warnings: string[] = [];
  const inbox = bench.inbox(record, { onWarning: (message) => warnings.push(message) });
  expect([await inbox.process(ahead), await inbox.process(ahead)]).toEqual(["executed", "duplicate"]);
  expect(warnings).toEqual([expect.stringContaining("lies in the future")]);
  const strict = bench.inbox(record, { futureIds: "dead-letter" });
  expect(await strict.process(event("b", { id: idAt(Date.now() + dayMs) }))).toBe("dead-lettered");
});

test("outside the days rows are swept by the time of processing, in batches, whatever their ids say", async () => {
  const derived = (n: number): string => `ff000000-0000-8000-8000-${String(n).padStart(12, "0")}`;
  for (let n = 0; n < 25; n += 1) await put(derived(n), "now() - interval '16 days'");
  await put(derived(100));
  await put(idAt(Date.now() + 90 * dayMs), "now() - interval '16 days'");
  await put(idAt(Date.now() - 90 * dayMs));
  expect((await retainProcessedEvents(database, { batchSize: 10 })).swept).toBe(26);
  expect(await bench.rows("select 1 from idemkit.processed_event")).toHaveLength(2);
});

test("a day with too many rows in the default partition stays there", async () => {
  const day = eventDayAt(Date.now());
  await bench.pool.query(
    `insert into idemkit.processed_event (event_id, consumer_name)
     select (left($1, 24) || lpad(to_hex(n), 12, '0'))::uuid, 'ledger' from generate_series(1, 50001) n`,
    [day.from],
  );
  const round = await retainProcessedEvents(database);
  expect(round.postponed).toEqual([day.name]);
  expect(await bench.rows("select count(*)::int as n from idemkit.processed_event_default")).toEqual([
    { n: 50_001 },
  ]);
});

test("several instances at once make and expire each day once", async () => {
  await makeDay(database, ago(20));
  const rounds = await Promise.all([1, 2, 3, 4].map(() => retainProcessedEvents(database)));
  const names = [0, 1, 2, 3].map((offset) => eventDayAt(Date.now(), offset).name);
  const attached = await bench.rows(
    "select inhrelid::regclass::text as name from pg_inherits where inhparent = 'idemkit.processed_event'::regclass",
  );
  expect(attached.map(({ name }) => String(name).replace("idemkit.", "")).toSorted()).toEqual(
    [ago(20).name, ...names, "processed_event_default", "processed_event_derived"].toSorted(),
  );
  expect(rounds.flatMap(({ expired }) => expired)).toEqual([ago(20).name]);
});

/** Deliveries may be in the way of one try. */
async function dropped(day: ReturnType<typeof ago>): Promise<void> {
  await until(async () => (await dropDay(database, day)) === "done", { what: "the drop" });
}

test("deliveries go on while days are made, expired and dropped under them", async () => {
  const inbox = bench.inbox(record);
  const stop = new AbortController();
  let outcomes = 0;
  const consume = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      expect(await inbox.processBatch([event("a", { key: String(outcomes) }), event("b")])).toEqual([
        "executed",
        "executed",
      ]);
      outcomes += 1;
    }
  };
  const consumers = [consume(), consume(), consume()];
  for (let days = 30; days > 20; days -= 1) {
    const done = { made: await makeDay(database, ago(days)), expired: await expireDay(database, ago(days)) };
    expect(done).toEqual({ made: "done", expired: "done" });
    await dropped(ago(days));
  }
  await retainProcessedEvents(database);
  stop.abort();
  await Promise.all(consumers);
  expect(outcomes).toBeGreaterThan(0);
  expect(await bench.effects()).toHaveLength(outcomes * 2);
});
