import type pg from "pg";
import { v7 } from "uuid";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { event, openBench, record } from "../integration/inbox/harness.ts";
import type { Bench } from "../integration/inbox/harness.ts";
import { spawnProcess, startCluster, until } from "../support/index.ts";
import type { TestCluster, TestProcess } from "../support/index.ts";

let bench: Bench;
let cluster: TestCluster | undefined;
beforeAll(async () => {
  bench = await openBench();
});
beforeEach(() => bench.pool.query("truncate effect, idemkit.aggregate_version, idemkit.parked_event"));
afterAll(async () => {
  await cluster?.remove();
  await bench.database.drop();
});

interface Sent {
  readonly eventId: string;
  readonly key: string;
  readonly version: number;
  readonly name: string;
}

function sent(name: string, version = 1, key = "order-1"): Sent {
  return { eventId: v7(), key, version, name };
}

function consumer(env: Record<string, string> = {}): TestProcess {
  return spawnProcess("test/crash/inbox-process.mjs", {
    env: { DATABASE_URL: bench.database.connectionString, ...env },
  });
}

function deliver(to: TestProcess, ...events: Sent[]): void {
  to.stdin.write(`${JSON.stringify(events)}\n`);
}

test("a consumer killed between the commit and the acknowledgement: the redelivery is a duplicate", async () => {
  const events = [sent("a"), sent("b", 2)];
  await using first = consumer({ DIE_BEFORE_ACK: "b" });
  deliver(first, ...events);
  expect(await first.exited).toMatchObject({ signal: "SIGKILL" });
  expect(first.lines).toEqual(["ready"]);
  expect(await bench.effects()).toEqual(["a", "b"]);
  await using second = consumer();
  deliver(second, ...events);
  expect((await second.waitForLine(/^ack (.*)/))[1]).toBe('["duplicate","duplicate"]');
  expect(await bench.effects()).toEqual(["a", "b"]);
});

test("a consumer killed in a handler leaves nothing: the redelivery is executed", async () => {
  const events = [sent("a"), sent("b", 2)];
  await using first = consumer({ DIE_IN_HANDLER: "b" });
  deliver(first, ...events);
  expect(await first.exited).toMatchObject({ signal: "SIGKILL" });
  expect(await bench.effects()).toEqual([]);
  await using second = consumer();
  deliver(second, ...events);
  expect((await second.waitForLine(/^ack (.*)/))[1]).toBe('["executed","executed"]');
  expect(await bench.effects()).toEqual(["a", "b"]);
});

const points = ["before-claim", "after-claim", "before-finish", "before-commit", "after-commit"] as const;

test.each(points)(
  "a consumer killed at %s: after the redelivery each event has taken effect once",
  async (point) => {
    const events = [sent("a"), sent("b", 2)];
    await using first = consumer({ CRASH_AT: point });
    deliver(first, ...events);
    expect(await first.exited).toMatchObject({ signal: "SIGKILL" });
    expect(await bench.effects()).toEqual(point === "after-commit" ? ["a", "b"] : []);
    await using second = consumer();
    deliver(second, ...events);
    const outcome = point === "after-commit" ? "duplicate" : "executed";
    expect((await second.waitForLine(/^ack (.*)/))[1]).toBe(JSON.stringify([outcome, outcome]));
    expect(await bench.effects()).toEqual(["a", "b"]);
  },
);

test("a consumer killed while it applies what waited behind a gap: the redelivery of the filler goes on with it", async () => {
  const [one, two, three] = [sent("a"), sent("b", 2), sent("c", 3)];
  await using first = consumer({ DIE_IN_HANDLER: "c" });
  deliver(first, one, three);
  expect((await first.waitForLine(/^ack (.*)/))[1]).toBe('["executed","parked"]');
  deliver(first, two);
  expect(await first.exited).toMatchObject({ signal: "SIGKILL" });
  expect(await bench.effects()).toEqual(["a", "b"]);
  await using second = consumer();
  deliver(second, two);
  expect((await second.waitForLine(/^ack (.*)/))[1]).toBe('["duplicate"]');
  expect(await bench.effects()).toEqual(["a", "b", "c"]);
});

test("two processes of one consumer get the same events at once: each takes effect once, each key in order", async () => {
  await using one = consumer();
  await using two = consumer();
  await Promise.all([one.waitForLine(/^ready/), two.waitForLine(/^ready/)]);
  const events = Array.from({ length: 60 }, (_, i) => sent(`e${i}`, Math.floor(i / 6) + 1, `order-${i % 6}`));
  for (let at = 0; at < events.length; at += 12) {
    deliver(one, ...events.slice(at, at + 12));
    deliver(two, ...events.slice(at, at + 12));
  }
  const acks = (of: TestProcess): readonly string[] => of.lines.filter((line) => line.startsWith("ack"));
  await until(() => acks(one).length === 5 && acks(two).length === 5, { what: "all batches acknowledged" });
  const outcomes = [...acks(one), ...acks(two)].flatMap((line) => JSON.parse(line.slice(4)) as string[]);
  expect(outcomes.filter((outcome) => outcome === "executed")).toHaveLength(60);
  const effects = await bench.effects();
  expect(effects).toHaveLength(60);
  for (let key = 0; key < 6; key += 1) {
    const places = effects.map((name) => Number(name.slice(1))).filter((i) => i % 6 === key);
    expect(places).toEqual(places.toSorted((a, b) => a - b));
  }
});

test("a paused consumer loses its transaction, another takes the event over, and the first commits nothing late", async () => {
  const stopped = bench.database.pool({ max: 1 });
  let paused = (): void => {};
  let goOn = (): void => {};
  const atHandler = new Promise<void>((resolve) => (paused = resolve));
  const gate = new Promise<void>((resolve) => (goOn = resolve));
  let runs = 0;
  const slow = bench.inbox(
    {
      "payment.charged": async (_, { tx }) => {
        runs += 1;
        if (runs > 1) return;
        await tx.query("insert into effect (consumer, event) values ('ledger', 'slow')");
        paused();
        await gate;
      },
    },
    { idleTimeoutMs: 100 },
    stopped,
  );
  const charged = event("a");
  const first = slow.process(charged);
  await atHandler;
  expect(await bench.inbox(record).process(charged)).toBe("executed");
  goOn();
  expect(await first).toBe("duplicate");
  expect(await bench.effects()).toEqual(["a"]);
});

/** A server to take away, started by the first test that needs it. */
async function awayPool(): Promise<pg.Pool> {
  cluster ??= await startCluster({ durable: true });
  const pool = (await cluster.createDatabase()).pool({ max: 4, connectionTimeoutMillis: 300 });
  await pool.query("create table effect (n bigint generated always as identity, consumer text, event text)");
  return pool;
}

test("the database goes away and comes back under a batch: no tries are charged, each event takes effect once", async () => {
  const pool = await awayPool();
  const events = Array.from({ length: 50 }, (_, i) => event(`e${i}`, { key: `order-${i % 5}` }));
  let reached = (): void => {};
  const half = new Promise<void>((resolve) => (reached = resolve));
  const inbox = bench.inbox(
    {
      "payment.charged": async (received, context) => {
        if (received.eventId === events[25]?.eventId) reached();
        await record["payment.charged"]?.(received, context);
      },
    },
    { retry: { attempts: 1 }, giveUpAfterMs: 60_000 },
    pool,
  );
  const processed = inbox.processBatch(events);
  await half;
  await cluster?.kill();
  await cluster?.start();
  expect(await processed).toEqual(events.map(() => "executed"));
  const rows = await pool.query<{ event: string }>("select event from effect order by n");
  expect(rows.rows.map((row) => row.event)).toEqual(events.map((_, i) => `e${i}`));
  expect((await pool.query("select * from idemkit.event_attempt")).rows).toEqual([]);
  expect((await pool.query("select * from idemkit.dead_letter")).rows).toEqual([]);
});

test("a database that stays away longer than the call may wait: the call is told so, and may be repeated", async () => {
  const pool = await awayPool();
  const inbox = bench.inbox(record, { retry: { attempts: 1 }, giveUpAfterMs: 50 }, pool);
  const events = [event("a"), event("b")];
  await cluster?.stop("immediate");
  await expect(inbox.processBatch(events)).rejects.toMatchObject({ code: "inbox_unavailable" });
  await expect(inbox.process(event("c"))).rejects.toMatchObject({ code: "inbox_unavailable" });
  await cluster?.start();
  await until(() =>
    inbox.processBatch(events).then(
      (outcomes) => outcomes.every((each) => each === "executed"),
      () => false,
    ),
  );
});
