import { enqueueAll, outboxStatus } from "idemkit";
import type pg from "pg";
import { expect, test } from "vitest";

import { createDatabase, until } from "../../support/index.ts";
import { createOutbox, order, recordingPublisher, relay, seen, send } from "./support.ts";
import type { Outbox } from "./support.ts";

/** A transaction with an id and a snapshot, held open. */
async function holdOpen(pool: pg.Pool): Promise<pg.PoolClient> {
  const client = await pool.connect();
  await client.query("begin isolation level repeatable read");
  await client.query("select pg_current_xact_id(), count(*) from pg_class");
  return client;
}

test("a transaction held open in another database stops nothing", async () => {
  const outbox = await createOutbox();
  await using other = await createDatabase({ empty: true });
  const held = await holdOpen(other.pool());
  const publisher = recordingPublisher();
  relay(outbox.database, publisher);
  await send(outbox.database, order("order-1"));
  await until(() => publisher.accepted.length === 1);
  expect((await outboxStatus(outbox.database)).oldestSnapshotMs).toBe(0);
  await held.query("rollback");
  held.release();
});

const events = 10_000;

/** Enqueues and relays as many events again and again; returns the best rate of publishing. */
async function bestRate({ database, client }: Outbox, rounds: number): Promise<number> {
  let best = 0;
  for (let round = 0; round < rounds; round += 1) {
    const own = await client();
    const ids: string[] = [];
    for (let from = 0; from < events; from += 1000) {
      await own.query("begin");
      const batch = Array.from({ length: 1000 }, (_, n) => order(`order-${(from + n) % 500}`, n));
      ids.push(...(await enqueueAll(own, batch, { database, notify: false })));
      await own.query("commit");
    }
    own.release();
    const publisher = recordingPublisher();
    publisher.publish = async (messages) => {
      publisher.accepted.push(...messages);
      return messages.map(() => ({ published: "acknowledged" }));
    };
    const startedMs = performance.now();
    const running = relay(database, publisher);
    await until(() => running.stats().published === events, { timeoutMs: 30_000, pollMs: 2 });
    best = Math.max(best, events / (performance.now() - startedMs));
    await running.stop();
    expect(new Set(seen(publisher.accepted).map(({ eventId }) => eventId))).toEqual(new Set(ids));
  }
  return best;
}

test("a snapshot held open in the same database slows the relay to no less than a third, and is reported", async () => {
  const outbox = await createOutbox();
  const usual = await bestRate(outbox, 3);
  const held = await holdOpen(outbox.pool);
  const slowed = await bestRate(outbox, 3);
  const { oldestSnapshotMs } = await outboxStatus(outbox.database);
  expect(oldestSnapshotMs).toBeGreaterThan(100);
  expect(slowed).toBeGreaterThan(usual / 3);
  await held.query("rollback");
  held.release();
}, 90_000);
