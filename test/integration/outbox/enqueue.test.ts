import { enqueue, enqueueAll, outboxStatus, refuse, runOnce, savepoint } from "idemkit";
import type { EnqueueOptions, OutgoingEvent, StandardSchema } from "idemkit";
import type pg from "pg";
import { expect, test } from "vitest";

import { createOutbox, order, send } from "./support.ts";
import type { Outbox } from "./support.ts";

const command = { scope: "customer-1", operation: "create-order", key: "key-1", command: {} };

async function keysOf(pool: pg.Pool): Promise<unknown[]> {
  const { rows } = await pool.query("select key from idemkit.outbox_event order by id");
  return rows.map(({ key }: { key: string }) => key);
}

/** Runs one enqueue in a handler. */
async function enqueued(
  { database }: Outbox,
  event: OutgoingEvent,
  options?: EnqueueOptions,
): Promise<string> {
  let id = "";
  await runOnce(database, { ...command, key: `key-${Math.random()}` }, async ({ tx }) => {
    id = await enqueue(tx, event, options);
  });
  return id;
}

test("an event is committed with its transaction, under the id that enqueue returned", async () => {
  const outbox = await createOutbox();
  const id = await enqueued(outbox, {
    type: "payment.charged",
    key: "order-1",
    payload: { amount: "12.50" },
    aggregateVersion: 3,
    sagaId: "saga-1",
    stepName: "charge",
    headers: { tenant: "a" },
  });
  const { rows } = await outbox.pool.query(
    `select event_id, topic, key, type, convert_from(payload, 'utf8') as payload, headers, aggregate_version::int,
            saga_id, step_name from idemkit.outbox_event`,
  );
  expect(rows).toEqual([
    {
      event_id: id,
      topic: "payment",
      key: "order-1",
      type: "payment.charged",
      payload: '{"amount":"12.50"}',
      headers: '{"tenant":"a"}',
      aggregate_version: 3,
      saga_id: "saga-1",
      step_name: "charge",
    },
  ]);
  expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/);
});

test("no event outlives its transaction: after a throw, a refusal and a discarded answer there is none", async () => {
  const { database, pool } = await createOutbox();
  const thrown = runOnce(database, command, async ({ tx }) => {
    await enqueue(tx, order("order-1"));
    throw new Error("out of stock");
  });
  await expect(thrown).rejects.toThrow("out of stock");
  await runOnce(database, { ...command, key: "key-2" }, async ({ tx }) => {
    await enqueue(tx, order("order-2"));
    throw refuse("no credit");
  });
  await runOnce(database, { ...command, key: "key-3" }, async ({ tx, notFinal }) => {
    await enqueue(tx, order("order-3"));
    notFinal();
  });
  expect(await keysOf(pool)).toEqual([]);
});

test("a replay sends nothing again", async () => {
  const { database, pool } = await createOutbox();
  for (const outcome of ["executed", "replayed"]) {
    const ended = await runOnce(database, command, async ({ tx }) => enqueue(tx, order("order-1")));
    expect(ended.outcome).toBe(outcome);
  }
  expect(await keysOf(pool)).toEqual(["order-1"]);
});

test("a handler that is run again after a serialization failure sends its events once", async () => {
  const { database, pool } = await createOutbox();
  let runs = 0;
  await runOnce(database, command, async ({ tx }) => {
    runs += 1;
    await enqueue(tx, order(`run-${runs}`));
    if (runs === 1) await tx.query("do $$ begin raise exception using errcode = '40001'; end $$");
  });
  expect(runs).toBe(2);
  expect(await keysOf(pool)).toEqual(["run-2"]);
});

test("a savepoint that is rolled back takes its events along, and only those", async () => {
  const { database, pool } = await createOutbox();
  await runOnce(database, command, async ({ tx }) => {
    await savepoint(tx, async () => {
      await enqueue(tx, order("inside-first"));
      throw new Error("no");
    }).catch(() => {});
    await enqueue(tx, order("before"));
    await savepoint(tx, async () => {
      await enqueue(tx, order("inside"));
      throw new Error("no");
    }).catch(() => {});
    await savepoint(tx, () => enqueue(tx, order("kept")));
    await enqueue(tx, order("after"));
  });
  expect(await keysOf(pool)).toEqual(["before", "kept", "after"]);
});

test("an enqueue that the handler did not await is part of its transaction", async () => {
  const { database, pool } = await createOutbox();
  await runOnce(database, command, ({ tx }) => void enqueue(tx, order("order-1")));
  expect(await keysOf(pool)).toEqual(["order-1"]);
});

test("an enqueue after the handler has returned is refused, not lost in silence", async () => {
  const { database } = await createOutbox();
  let leaked: object | undefined;
  await runOnce(database, command, ({ tx }) => {
    leaked = tx;
  });
  await expect(enqueue(leaked ?? {}, order("order-1"))).rejects.toMatchObject({ code: "transaction_closed" });
});

test("a change of the payload after enqueue changes nothing", async () => {
  const { database, pool } = await createOutbox();
  await runOnce(database, command, async ({ tx }) => {
    const payload = { total: 1 };
    const bytes = new Uint8Array([1, 2, 3]);
    await enqueue(tx, { type: "a.b", key: "1", payload });
    await enqueue(tx, { type: "a.b", key: "2", payload: bytes });
    payload.total = 2;
    bytes.fill(0);
  });
  const { rows } = await pool.query(
    "select encode(payload, 'hex') as hex from idemkit.outbox_event order by id",
  );
  expect(rows).toEqual([{ hex: Buffer.from('{"total":1}').toString("hex") }, { hex: "010203" }]);
});

test("an event over maxBytes is refused, and one of exactly that size is not", async () => {
  const outbox = await createOutbox();
  const event: OutgoingEvent = { type: "a.b", key: "12345", payload: new Uint8Array(95) };
  await enqueued(outbox, event, { maxBytes: 100 });
  await expect(enqueued(outbox, event, { maxBytes: 99 })).rejects.toMatchObject({
    code: "outbox_event_too_large",
  });
  await expect(enqueued(outbox, { ...event, payload: new Uint8Array(1_000_000) })).rejects.toMatchObject({
    code: "outbox_event_too_large",
  });
});

function schema(check: (value: unknown) => boolean, asynchronous: boolean): StandardSchema {
  const validate = (value: unknown): { issues?: { message: string; path: string[] }[] } =>
    check(value) ? {} : { issues: [{ message: "not 42", path: ["number"] }] };
  return {
    "~standard": { version: 1, validate: asynchronous ? async (value) => validate(value) : validate },
  };
}

test.each([false, true])(
  "a payload is checked by its Standard Schema (asynchronous: %s)",
  async (asynchronous) => {
    const outbox = await createOutbox();
    const only42 = schema((value) => (value as { number: number }).number === 42, asynchronous);
    await enqueued(outbox, order("right", 42), { schema: only42 });
    await expect(enqueued(outbox, order("wrong", 41), { schema: only42 })).rejects.toMatchObject({
      code: "outbox_payload_refused",
      details: { at: "payload/number" },
    });
    expect(await keysOf(outbox.pool)).toEqual(["right"]);
  },
);

test("a transaction takes a thousand keys and not one more", async () => {
  const { database, pool } = await createOutbox();
  const over = runOnce(database, command, async ({ tx }) => {
    for (let i = 0; i <= 1000; i += 1) await enqueue(tx, order(`order-${i}`));
  });
  await expect(over).rejects.toMatchObject({ code: "outbox_too_many_keys" });
  await runOnce(database, command, async ({ tx }) => {
    for (let i = 0; i < 3000; i += 1) await enqueue(tx, order(`order-${i % 1000}`, i));
  });
  const { rows } = await pool.query(
    "select count(distinct key)::int as keys, count(*)::int as events from idemkit.outbox_event",
  );
  expect(rows).toEqual([{ keys: 1000, events: 3000 }]);
});

test("with a client of its own a service enqueues in its transaction, and not outside of one", async () => {
  const { database, pool, client } = await createOutbox();
  const own = await client();
  await own.query("begin");
  await enqueueAll(own, [order("rolled-back")]);
  await own.query("rollback");
  await own.query("begin");
  const ids = await enqueueAll(own, [order("a", 1), order("b", 1), order("a", 2)], { database });
  await own.query("commit");
  expect(new Set(ids).size).toBe(3);
  expect(await keysOf(pool)).toEqual(["a", "b", "a"]);

  const refused = { code: "outbox_transaction_unknown" };
  await expect(enqueueAll(own, [order("c")])).rejects.toMatchObject(refused);
  await expect(enqueueAll(pool, [order("c")])).rejects.toMatchObject(refused);
  await expect(enqueue(own, order("c"))).rejects.toMatchObject(refused);
  own.release();
});

test("the active trace is carried in the event, also where it is not sampled", async () => {
  const outbox = await createOutbox();
  const api = Symbol.for("opentelemetry.js.api.1");
  const span = {
    spanContext: () => ({
      traceId: "0af7651916cd43dd8448eb211c80319c",
      spanId: "b7ad6b7169203331",
      traceFlags: 0,
    }),
  };
  const context = {
    getValue: (name: symbol) => (name === Symbol.for("OpenTelemetry Context Key SPAN") ? span : undefined),
  };
  Reflect.set(globalThis, api, { version: "1.9.0", context: { active: () => context } });
  try {
    await enqueued(outbox, { ...order("order-1"), headers: { tenant: "a" } });
  } finally {
    Reflect.deleteProperty(globalThis, api);
  }
  const given = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  await enqueued(outbox, order("order-2"), { traceparent: given });
  await enqueued(outbox, order("order-3"));
  await expect(enqueued(outbox, order("order-4"), { traceparent: "00-0-0-00" })).rejects.toMatchObject({
    details: { at: "traceparent" },
  });
  const { rows } = await outbox.pool.query("select headers::json from idemkit.outbox_event order by id");
  expect(rows.map(({ headers }: { headers: unknown }) => headers)).toEqual([
    { tenant: "a", traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00" },
    { traceparent: given },
    null,
  ]);
});

test("the status tells how much waits, and how old the oldest is", async () => {
  const { database, pool } = await createOutbox();
  expect(await outboxStatus(database)).toEqual({
    oldestUnpublishedMs: 0,
    unpublished: 0,
    parkedKeys: 0,
    oldestSnapshotMs: 0,
  });
  await send(database, order("a"), order("b"));
  await pool.query(
    "update idemkit.outbox_event set created_at = created_at - interval '1 hour' where key = 'b'",
  );
  const status = await outboxStatus(database);
  expect(status.unpublished).toBe(2);
  expect(status.oldestUnpublishedMs).toBeGreaterThan(3_600_000);
  expect(status.oldestUnpublishedMs).toBeLessThan(3_700_000);
});
