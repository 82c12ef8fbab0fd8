import type { Relay } from "idemkit";
import { once } from "node:events";

import { fromPg } from "idemkit/pg";
import { expect, test } from "vitest";

import { outboxStore } from "../../../src/outbox/relay/store.ts";
import type { OutboxStore } from "../../../src/outbox/relay/store.ts";
import { statementOf } from "../../../src/postgres/statement.ts";
import { until } from "../../support/index.ts";
import { createOutbox, order, recordingPublisher, relay, send, waitsForLock } from "./support.ts";
import type { Outbox } from "./support.ts";

const [mine, theirs] = ["00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"];
const settle = "delete from%outbox_event";
const hold = "insert into%outbox_held_event";

function storeOf({ database }: Outbox): OutboxStore {
  return outboxStore(database);
}

/** One event, its shard owned by `mine` at epoch 1. */
async function ownedEvent(
  outbox: Outbox,
): Promise<{ shard: number; fence: Parameters<OutboxStore["settle"]>[0] }> {
  await send(outbox.database, order("order-1"));
  await outbox.pool.query(
    "update idemkit.outbox_shard set owner = $1, epoch = 1, expires_at = clock_timestamp() + interval '1 hour'",
    [mine],
  );
  const { rows } = await outbox.pool.query<{ shard: number }>("select shard from idemkit.outbox_event");
  const shard = rows[0]?.shard ?? -1;
  return { shard, fence: { shard, owner: mine, epoch: "1" } };
}

const takeOver = "update idemkit.outbox_shard set owner = $1, epoch = epoch + 1 where shard = $2";

async function remaining({ pool }: Outbox): Promise<number> {
  const { rows } = await pool.query<{ n: number }>("select count(*)::int as n from idemkit.outbox_event");
  return rows[0]?.n ?? -1;
}

test("a stale owner's delete waits for a take-over in progress, and then deletes nothing", async () => {
  const outbox = await createOutbox();
  const { shard, fence } = await ownedEvent(outbox);
  const events = await storeOf(outbox).read(shard, 10);
  const other = await outbox.client();
  await other.query("begin");
  await other.query(takeOver, [theirs, shard]);
  const deleting = storeOf(outbox).settle(fence, events);
  await until(() => waitsForLock(outbox.pool, settle));
  await other.query("commit");
  expect(await deleting).toBeUndefined();
  expect(await remaining(outbox)).toBe(1);
  other.release();
});

test("a take-over that is rolled back lets the owner's delete go on", async () => {
  const outbox = await createOutbox();
  const { shard, fence } = await ownedEvent(outbox);
  const events = await storeOf(outbox).read(shard, 10);
  const other = await outbox.client();
  await other.query("begin");
  await other.query(takeOver, [theirs, shard]);
  const deleting = storeOf(outbox).settle(fence, events);
  await until(() => waitsForLock(outbox.pool, settle));
  await other.query("rollback");
  expect(await deleting).toBe(1);
  expect(await remaining(outbox)).toBe(0);
  other.release();
});

test("a delete does not wait for the disk, and the connection's next statement does again", async () => {
  const outbox = await createOutbox();
  const { shard, fence } = await ownedEvent(outbox);
  const pool = outbox.test.pool({ max: 1 });
  const settling = { ...fromPg(pool).connections };
  const asked: unknown[] = [];
  const store = outboxStore({
    ...outbox.database,
    connections: {
      ...settling,
      query: async (call) => {
        const result = await settling.query(call);
        asked.push(result.rows[0]?.["set_config"]);
        return result;
      },
    },
  });
  await store.settle(fence, await store.read(shard, 10));
  expect(asked).toEqual([undefined, "off"]);
  const { rows } = await pool.query("show synchronous_commit");
  expect(rows).toEqual([{ synchronous_commit: "on" }]);
  await pool.end();
});

test("a stale owner neither parks nor holds", async () => {
  const outbox = await createOutbox();
  const { shard, fence } = await ownedEvent(outbox);
  const store = storeOf(outbox);
  const events = await store.read(shard, 10);
  const [refused] = events;
  if (refused === undefined) throw new Error("no event");
  await outbox.pool.query(takeOver, [theirs, shard]);
  expect(await store.park(fence, [{ refused, events, reason: "too large" }])).toBeUndefined();
  expect(await store.hold(fence, events)).toBeUndefined();
  expect(await remaining(outbox)).toBe(1);
  const { rows } = await outbox.pool.query("select from idemkit.outbox_parked_key");
  expect(rows).toHaveLength(0);
});

test("a follower that is being held while its key is released goes back with the others", async () => {
  const outbox = await createOutbox();
  const { shard, fence } = await ownedEvent(outbox);
  const store = storeOf(outbox);
  const events = await store.read(shard, 10);
  const [refused] = events;
  if (refused === undefined) throw new Error("no event");
  await store.park(fence, [{ refused, events, reason: "too large" }]);
  await send(outbox.database, order("order-1", 2));
  const followers = await store.read(shard, 10);
  expect(followers.map(({ parked }) => parked)).toEqual([true]);

  // The release has locked the parked key and not yet moved the events: the hold waits, and then leaves its event alone.
  const operator = await outbox.client();
  await operator.query("begin");
  const run = (name: "outbox-unpark" | "outbox-release"): Promise<unknown> =>
    operator.query(statementOf(name, "idemkit").text, ["order", "order-1"]);
  await run("outbox-unpark");
  const holding = store.hold(fence, followers);
  await until(() => waitsForLock(outbox.pool, hold));
  await run("outbox-release");
  await operator.query("commit");
  expect(await holding).toBe(0);
  const rows = await store.read(shard, 10);
  expect(rows.map(({ message }) => message.aggregateVersion)).toEqual([1, 2]);
  expect(rows.map(({ parked }) => parked)).toEqual([false, false]);
  operator.release();
});

test("leases are judged by the clock and not by the start of the transaction", async () => {
  const outbox = await createOutbox();
  await outbox.pool.query(
    "update idemkit.outbox_shard set owner = $1, epoch = 1, expires_at = clock_timestamp() + interval '1 hour'",
    [theirs],
  );
  const inTransaction = await outbox.client();
  await inTransaction.query("begin");
  await inTransaction.query("select now()");
  await outbox.pool.query("update idemkit.outbox_shard set expires_at = clock_timestamp() where shard = 3");
  const { rows } = await inTransaction.query(statementOf("outbox-acquire", "idemkit").text, [mine, 1000, 16]);
  await inTransaction.query("commit");
  expect(rows).toEqual([{ shard: 3, epoch: "2" }]);
  inTransaction.release();
});

test("a shard whose owner is deleting at this moment is not taken over", async () => {
  const outbox = await createOutbox();
  const { shard } = await ownedEvent(outbox);
  await outbox.pool.query("update idemkit.outbox_shard set expires_at = clock_timestamp()");
  const owner = await outbox.client();
  await owner.query("begin");
  await owner.query("select from idemkit.outbox_shard where shard = $1 for share", [shard]);
  const { rows } = await outbox.pool.query(statementOf("outbox-acquire", "idemkit").text, [theirs, 1000, 16]);
  expect(rows).toHaveLength(15);
  expect(rows.map((row: { shard: number }) => row.shard)).not.toContain(shard);
  await owner.query("commit");
  owner.release();
});

const leased = { leaseMs: 2000, heartbeatMs: 50 };

test("an expired lease that nobody took is renewed under its epoch", async () => {
  const outbox = await createOutbox();
  const running = relay(outbox.database, recordingPublisher(), leased);
  await until(() => running.stats().shards.length === 16);
  await outbox.pool.query(
    "update idemkit.outbox_shard set expires_at = clock_timestamp() - interval '1 minute'",
  );
  await until(async () => {
    const { rows } = await outbox.pool.query(
      "select from idemkit.outbox_shard where expires_at > clock_timestamp() and epoch = 1",
    );
    return rows.length === 16;
  });
  expect(running.stats().shards).toHaveLength(16);
});

test("a relay that lost a shard notices it and leaves it alone", async () => {
  const outbox = await createOutbox();
  const running = relay(outbox.database, recordingPublisher(), leased);
  await until(() => running.stats().shards.length === 16);
  // A lease that outlives the test: it is not there to be taken back.
  await outbox.pool.query(
    "update idemkit.outbox_shard set owner = $1, epoch = 2, expires_at = clock_timestamp() + interval '1 hour' where shard < 4",
    [theirs],
  );
  await until(() => running.stats().shards.length === 12);
  expect(Math.min(...running.stats().shards)).toBe(4);
});

test("what a relay is publishing is aborted when it loses the shard, and its successor sends it", async () => {
  const outbox = await createOutbox();
  const publisher = recordingPublisher();
  const aborted = new Promise<void>((resolve) => {
    publisher.publish = async (messages, signal) => {
      await once(signal ?? new EventTarget(), "abort");
      resolve();
      return messages.map(() => ({ published: "failed", error: new Error("aborted") }));
    };
  });
  const running = relay(outbox.database, publisher, leased);
  await until(() => running.stats().shards.length === 16);
  await send(outbox.database, order("order-1"));
  await until(async () => (await remaining(outbox)) === 1);
  await outbox.pool.query(
    "update idemkit.outbox_shard set owner = $1, epoch = 2, expires_at = clock_timestamp()",
    [theirs],
  );
  await aborted;
  publisher.publish = async (messages) => messages.map(() => ({ published: "acknowledged" }));
  await until(async () => (await remaining(outbox)) === 0);
  expect(running.stats().published).toBe(1);
});

function shares(...relays: readonly Relay[]): number[] {
  const held = relays.map((each) => each.stats().shards);
  return new Set(held.flat()).size === held.flat().length ? held.map(({ length }) => length) : [];
}

test("relays share the shards fairly, by capacity, and take over from one that stops", async () => {
  const outbox = await createOutbox();
  const start = (shards = 16): Relay => relay(outbox.database, recordingPublisher(), { ...leased, shards });
  const settled = (expected: readonly number[], ...relays: readonly Relay[]): Promise<unknown> =>
    until(() => JSON.stringify(shares(...relays)) === JSON.stringify(expected), {
      what: `shares of ${JSON.stringify(expected)}`,
    });
  const first = start();
  await settled([16], first);
  const second = start();
  await settled([8, 8], first, second);
  const small = start(2);
  await settled([7, 7, 2], first, second, small);
  await small.stop();
  await settled([8, 8], first, second);
  await second.stop();
  await settled([16], first);
  expect(first.stats().shards.toSorted((a, b) => a - b)).toEqual(
    Array.from({ length: 16 }, (_, shard) => shard),
  );
});

test("the heartbeat keeps its own connection: a pool that is busy does not lose the leases", async () => {
  const outbox = await createOutbox();
  const pool = outbox.test.pool({ max: 3 });
  const running = relay(fromPg(pool), recordingPublisher(), { leaseMs: 300, heartbeatMs: 50 });
  await until(() => running.stats().shards.length === 16);
  const busy = await Promise.all([pool.connect(), pool.connect()]);
  const { rows } = await outbox.pool.query<{ at: Date }>(
    "select clock_timestamp() + interval '900 ms' as at",
  );
  await until(async () => {
    const { rows: later } = await outbox.pool.query(
      "select from idemkit.outbox_shard where epoch = 1 and expires_at > $1",
      [rows[0]?.at],
    );
    return later.length === 16;
  });
  expect(running.stats().shards).toHaveLength(16);
  for (const client of busy) client.release();
});
