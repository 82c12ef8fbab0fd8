import { enqueueAll } from "idemkit";
import { fromPg } from "idemkit/pg";
import pg from "pg";
import { expect, test } from "vitest";

import { channelOf } from "../../../src/outbox/wake.ts";
import { until } from "../../support/index.ts";
import { createOutbox, order, recordingPublisher, relay, send } from "./support.ts";
import type { Outbox } from "./support.ts";

/** Longer than any test: what arrives was announced. */
const never = 600_000;

/** A relay that has looked once and now only listens. */
async function listening({
  test: { connectionString },
  database,
  pool,
}: Outbox): Promise<ReturnType<typeof recordingPublisher>> {
  const publisher = recordingPublisher();
  relay(database, publisher, { pollMs: never, notify: { connectionString } });
  await until(async () => {
    const { rowCount } = await pool.query(
      "select from pg_stat_activity where query like 'listen%' and state = 'idle' and datname = current_database()",
    );
    return rowCount === 1;
  });
  await send(database, order("first"));
  await until(() => publisher.accepted.length === 1);
  return publisher;
}

test("a commit wakes a relay that only listens", async () => {
  const outbox = await createOutbox();
  const publisher = await listening(outbox);
  for (let n = 1; n <= 5; n += 1) {
    await send(outbox.database, order(`order-${n}`));
    await until(() => publisher.accepted.length === n + 1, { timeoutMs: 2000 });
  }
  expect(publisher.batches).toEqual([1, 1, 1, 1, 1, 1]);
});

test("a commit with a client of the service's own wakes it too, and not before", async () => {
  const outbox = await createOutbox();
  const publisher = await listening(outbox);
  const own = await outbox.client();
  await own.query("begin");
  await enqueueAll(own, [order("order-1")], { database: outbox.database });
  expect(publisher.accepted).toHaveLength(1);
  await own.query("commit");
  await until(() => publisher.accepted.length === 2, { timeoutMs: 2000 });
  own.release();
});

test("many commits make few notifications, all outside the transactions", async () => {
  const outbox = await createOutbox();
  const listener = new pg.Client({ connectionString: outbox.test.connectionString });
  listener.on("error", () => {});
  await listener.connect();
  await listener.query(`listen ${channelOf("idemkit")}`);
  const heard: string[] = [];
  listener.on("notification", ({ payload = "" }) => heard.push(payload));
  const startedMs = performance.now();
  const keys = Array.from({ length: 200 }, (_, n) => `order-${n}`);
  await Promise.all(keys.map((key) => send(outbox.database, order(key))));
  const shardsNamed = (): Set<string> => new Set(heard.flatMap((payload) => payload.split(",")));
  await until(() => shardsNamed().size === 16); // two hundred keys fall into all sixteen shards
  const tookMs = performance.now() - startedMs;
  expect(heard.length).toBeLessThanOrEqual(2 + tookMs / 10);
  expect(heard.length).toBeLessThan(200);
  await listener.end();
});

test("a listener that is cut off connects again, and what came meanwhile is found", async () => {
  const outbox = await createOutbox();
  const publisher = await listening(outbox);
  await outbox.pool.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen%' and datname = current_database()",
  );
  await send(outbox.database, order("order-1"));
  await until(() => publisher.accepted.length === 2);
  await until(async () => {
    const { rowCount } = await outbox.pool.query(
      "select from pg_stat_activity where query like 'listen%' and state = 'idle' and datname = current_database()",
    );
    return rowCount === 1;
  });
  await send(outbox.database, order("order-2"));
  await until(() => publisher.accepted.length === 3, { timeoutMs: 2000 });
  expect(publisher.accepted.map(({ key }) => key)).toEqual(["first", "order-1", "order-2"]);
});

test("with notifications switched off, polling finds the events", async () => {
  const outbox = await createOutbox({ notify: false });
  const listener = new pg.Client({ connectionString: outbox.test.connectionString });
  listener.on("error", () => {});
  await listener.connect();
  await listener.query(`listen ${channelOf("idemkit")}`);
  let heard = 0;
  listener.on("notification", () => (heard += 1));
  const publisher = recordingPublisher();
  const database = fromPg(outbox.test.pool(), { notify: false });
  relay(database, publisher);
  await send(outbox.database, order("order-1"));
  await until(() => publisher.accepted.length === 1);
  await listener.query("select 1"); // whatever was sent before would have arrived with this answer
  expect(heard).toBe(0);
  await listener.end();
});
