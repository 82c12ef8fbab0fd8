import { enqueueAll, runOnce, enqueue } from "idemkit";
import type { OutgoingEvent } from "idemkit";
import { checkDelivery } from "idemkit/testing";
import type { SeenEvent } from "idemkit/testing";
import { expect, test } from "vitest";

import { until } from "../../support/index.ts";
import { createOutbox, order, recordingPublisher, relay, send, versions, waitsForLock } from "./support.ts";
import type { Outbox } from "./support.ts";

const insert = "insert into%outbox_event";

async function rowsOf({ pool }: Outbox): Promise<{ id: number; key: string; version: number }[]> {
  const { rows } = await pool.query<{ id: number; key: string; version: number }>(
    "select id::int, key, aggregate_version::int as version from idemkit.outbox_event order by id",
  );
  return rows;
}

async function lastId({ pool }: Outbox): Promise<number> {
  const { rows } = await pool.query<{ last: string }>(
    "select last_value as last from pg_sequences where schemaname = 'idemkit' and sequencename = 'outbox_event_id_seq'",
  );
  return Number(rows[0]?.last);
}

test("a second writer of a key waits for the first one's commit before it draws its id", async () => {
  const outbox = await createOutbox();
  const [first, second] = [await outbox.client(), await outbox.client()];
  await first.query("begin");
  await enqueueAll(first, [order("order-1", 1)]);
  const drawn = await lastId(outbox);

  await second.query("begin");
  const waiting = enqueueAll(second, [order("order-1", 3)]);
  await until(() => waitsForLock(outbox.pool, insert));
  // A lock taken by a trigger comes too late: the identity was evaluated before it, and this id would be in the middle.
  expect(await lastId(outbox)).toBe(drawn);

  await enqueueAll(first, [order("order-1", 2)]);
  await first.query("commit");
  await waiting;
  await second.query("commit");
  expect((await rowsOf(outbox)).map(({ version }) => version)).toEqual([1, 2, 3]);
  for (const client of [first, second]) client.release();
});

test("sessions draw their ids one by one: a cache of ids would put a later commit in front", async () => {
  const outbox = await createOutbox();
  const [early, late] = [await outbox.client(), await outbox.client()];
  await early.query("begin");
  await enqueueAll(early, [order("other", 0)]); // would fill a cache of this session
  await early.query("commit");
  await late.query("begin");
  await enqueueAll(late, [order("order-1", 1)]);
  await late.query("commit");
  await early.query("begin");
  await enqueueAll(early, [order("order-1", 2)]);
  await early.query("commit");
  const ofOrder = (await rowsOf(outbox)).filter(({ key }) => key === "order-1");
  expect(ofOrder.map(({ version }) => version)).toEqual([1, 2]);
  for (const client of [early, late]) client.release();
});

test("a writer that sleeps between enqueue and commit is neither skipped nor waited for", async () => {
  const outbox = await createOutbox();
  const publisher = recordingPublisher();
  relay(outbox.database, publisher);
  const sleeper = await outbox.client();
  await sleeper.query("begin");
  await enqueueAll(sleeper, [order("slow", 1)]);
  for (let n = 1; n <= 20; n += 1) await send(outbox.database, order(`quick-${n}`));
  // Among the twenty keys are some of the sleeper's shard, with higher ids than its own.
  await until(() => publisher.accepted.length === 20);
  expect(publisher.accepted.map(({ key }) => key)).not.toContain("slow");

  await sleeper.query("commit");
  await until(() => publisher.accepted.length === 21);
  expect(publisher.accepted.at(-1)?.key).toBe("slow");
  sleeper.release();
});

test("events of a transaction keep the order in which they were enqueued", async () => {
  const outbox = await createOutbox();
  const publisher = recordingPublisher();
  const events = [1, 2, 3, 4, 5].map((version) => order("order-1", version));
  await send(outbox.database, ...events);
  relay(outbox.database, publisher);
  await until(() => publisher.accepted.length === 5);
  expect(versions(publisher.accepted)).toEqual([1, 2, 3, 4, 5]);
});

test("transactions that send events of the same keys in different orders never deadlock", async () => {
  const outbox = await createOutbox();
  const publisher = recordingPublisher();
  const keys = Array.from({ length: 6 }, (_, i) => `order-${i}`);
  const running = relay(outbox.database, publisher);

  const writers = Array.from({ length: 8 }, async (_, writer) => {
    for (let n = 0; n < 25; n += 1) {
      const shuffled = keys.toSorted(() => Math.random() - 0.5).slice(0, 4);
      const command = { scope: "writer", operation: "write", key: `${writer}-${n}`, command: {} };
      await runOnce(outbox.database, command, async ({ tx }) => {
        for (const key of shuffled) await enqueue(tx, order(key));
      });
    }
  });
  await Promise.all(writers);
  await until(() => running.stats().published === 800);

  const { rows } = await outbox.pool.query(
    "select deadlocks::int from pg_stat_database where datname = current_database()",
  );
  expect(rows).toEqual([{ deadlocks: 0 }]);
  expect(await rowsOf(outbox)).toEqual([]);
});

/**
 * The commits of a key are in the order in which its rows were versioned: a writer locks the row, so that the version is
 * the key's number of commits.
 */
test("under concurrent writers every key's events appear in the order of their commits", async () => {
  const outbox = await createOutbox();
  const publisher = recordingPublisher();
  const keys = Array.from({ length: 5 }, (_, i) => `order-${i}`);
  await outbox.pool.query(
    "create table if not exists account (key text primary key, version int not null default 0)",
  );
  await outbox.pool.query("insert into account (key) select unnest($1::text[])", [keys]);
  const committed = new Map<string, SeenEvent[]>(keys.map((key) => [key, []]));
  const running = relay(outbox.database, publisher, { batchSize: 3 });

  const writers = Array.from({ length: 8 }, async (_, writer) => {
    for (let n = 0; n < 30; n += 1) {
      const key = keys[(writer + n) % keys.length] ?? "";
      const command = { scope: "writer", operation: "write", key: `${writer}-${n}`, command: {} };
      await runOnce(outbox.database, command, async ({ tx }) => {
        const { rows } = await tx.query<{ version: number }>(
          "update account set version = version + 1 where key = $1 returning version",
          [key],
        );
        const version = rows[0]?.version ?? 0;
        const event: OutgoingEvent = order(key, version);
        const eventId = await enqueue(tx, event);
        const events = committed.get(key) ?? [];
        events[version - 1] = { eventId, key };
      });
    }
  });
  await Promise.all(writers);
  await until(() => running.stats().published === 240);
  const delivered = publisher.accepted.map(({ eventId, key }) => ({ eventId, key }));
  expect(checkDelivery([...committed.values()].flat(), delivered)).toMatchObject({
    events: 240,
    delivered: 240,
    lost: 0,
    foreign: 0,
    inverted: 0,
    faults: [],
  });
});
