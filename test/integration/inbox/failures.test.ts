import { applyIfNewer, createInbox, savepoint } from "idemkit";
import { fromPg } from "idemkit/pg";
import type pg from "pg";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { createPool, pgBouncerAvailable, startPgBouncer, until } from "../../support/index.ts";
import { event, nameOf, openBench, record, writeEffect } from "./harness.ts";
import type { Bench } from "./harness.ts";

let bench: Bench;
beforeAll(async () => {
  bench = await openBench();
});
beforeEach(() => bench.pool.query("truncate effect, idemkit.dead_letter, idemkit.event_attempt"));
afterAll(() => bench.database.drop());

function abortOf(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve());
  });
}

const refusals = ["40001", "40P01", "55P03", "53100", "53200", "58030", "25006", "57P01"];

test("what the database is to blame for is not charged: conflicts, locks, a full disk, a standby", async () => {
  let runs = 0;
  const inbox = bench.inbox(
    {
      "payment.charged": async ({ data }, { tx, attempt }) => {
        runs += 1;
        expect(attempt).toBe(1);
        await writeEffect(tx, nameOf(data));
        const code = refusals[runs - 1];
        const refusal = `do $$ begin raise exception 'x' using errcode = '${code}'; end $$`;
        if (code !== undefined) await tx.query(refusal);
      },
    },
    { retry: { attempts: 1 } },
  );
  expect(await inbox.process(event("a"))).toBe("executed");
  expect(runs).toBe(refusals.length + 1);
  expect(await bench.effects()).toEqual(["a"]);
});

test("a connection that the server cuts is not charged, whatever the handler makes of the error", async () => {
  let runs = 0;
  const inbox = bench.inbox(
    {
      "payment.charged": async ({ data }, { tx }) => {
        runs += 1;
        await writeEffect(tx, nameOf(data));
        if (runs > 1) return;
        const { rows } = await tx.query<{ pid: number }>("select pg_backend_pid() as pid");
        await bench.pool.query("select pg_terminate_backend($1)", [rows[0]?.pid]);
        await tx.query("select 1").catch(() => {
          throw new Error("could not look it up");
        });
      },
    },
    { retry: { attempts: 1 } },
  );
  expect(await inbox.process(event("a"))).toBe("executed");
  expect(await bench.effects()).toEqual(["a"]);
});

test("a handler that oversleeps the transaction's idle bound is charged, so that it can't be tried for ever", async () => {
  const inbox = bench.inbox(
    {
      "payment.charged": async (_, { tx }) => {
        await until(async () => (await bench.rows(idleOfInbox)).length === 0, {
          what: "the server's end of it",
        });
        await tx.query("select 1");
      },
    },
    { idleTimeoutMs: 100, retry: { attempts: 2, baseMs: 0 } },
  );
  expect(await inbox.process(event("a"))).toBe("dead-lettered");
});

const idleOfInbox =
  "select 1 from pg_stat_activity where state like 'idle in transaction%' and datname = current_database()";

test("a handler that takes too long is rolled back, told so by its signal, and charged", async () => {
  const reasons: unknown[] = [];
  const inbox = bench.inbox(
    {
      "payment.charged": async ({ data }, { tx, signal }) => {
        await writeEffect(tx, nameOf(data));
        await abortOf(signal);
        reasons.push((signal.reason as { code: string }).code);
      },
    },
    { handlerTimeoutMs: 20, retry: { attempts: 2 } },
  );
  expect(await inbox.process(event("a"))).toBe("dead-lettered");
  expect(reasons).toEqual(["handler_timed_out", "handler_timed_out"]);
  expect(await bench.effects()).toEqual([]);
});

test("a delivery that is given up is rolled back and charged to nobody", async () => {
  const given = new AbortController();
  const charged = event("a");
  const inbox = bench.inbox({
    "payment.charged": async ({ data }, { tx, signal }) => {
      await writeEffect(tx, nameOf(data));
      given.abort(new Error("revoked"));
      await abortOf(signal);
    },
  });
  await expect(inbox.process(charged, { signal: given.signal })).rejects.toMatchObject({
    code: "inbox_aborted",
  });
  expect(await bench.rows("select * from idemkit.event_attempt")).toEqual([]);
  expect(await bench.inbox(record).process(charged)).toBe("executed");
  expect(await bench.effects()).toEqual(["a"]);
});

test("tries add up over redeliveries and processes", async () => {
  const charged = event("a");
  const failing = {
    "payment.charged": (): never => {
      throw new Error("no such account");
    },
  };
  const given = new AbortController();
  const first = bench.inbox(failing, { retry: { attempts: 2, baseMs: 3_600_000, maxMs: 3_600_000 } });
  const stopped = first.process(charged, { signal: given.signal }).catch((error: unknown) => error);
  await until(async () => (await bench.rows("select 1 from idemkit.event_attempt")).length === 1, {
    what: "a charge",
  });
  given.abort();
  expect(await stopped).toMatchObject({ code: "inbox_aborted" });
  expect(await bench.inbox(failing, { retry: { attempts: 2 } }).process(charged)).toBe("dead-lettered");
  expect(await bench.rows("select attempts, reason, error from idemkit.dead_letter")).toEqual([
    { attempts: 2, reason: "poison", error: "Error: no such account" },
  ]);
  expect(await bench.rows("select * from idemkit.event_attempt")).toEqual([]);
});

test("what a handler does after its time touches nothing: its client may be another transaction's by then", async () => {
  const late: unknown[] = [];
  let over = (): void => {};
  const ended = new Promise<void>((resolve) => (over = resolve));
  const pool = bench.database.pool({ max: 1 });
  const inbox = bench.inbox(
    {
      "payment.charged": async ({ data }, { tx, signal }) => {
        await abortOf(signal);
        await ended;
        const refused = (error: { code: string }): string => error.code;
        const query = await tx.query("select 1").catch(refused);
        const saved = await savepoint(tx, () => writeEffect(tx, nameOf(data))).catch(refused);
        const guard = { aggregate: "a", version: 1, onGap: "accept" } as const;
        late.push(query, saved, await applyIfNewer(tx, guard, () => {}).catch(refused));
      },
    },
    { handlerTimeoutMs: 20, retry: { attempts: 1 } },
    pool,
  );
  expect(await inbox.process(event("a"))).toBe("dead-lettered");
  const next = await pool.connect();
  await next.query("begin");
  over();
  await until(() => late.length === 3, { what: "the late handler" });
  await next.query("commit");
  next.release();
  expect(late).toEqual(["transaction_closed", "transaction_closed", "transaction_closed"]);
  expect(await bench.effects()).toEqual([]);
});

test("handlers of a batch have their time each, not all together", async () => {
  let runs = 0;
  const handle = (_: unknown, { tx }: { tx: pg.PoolClient }): Promise<unknown> => {
    runs += 1;
    return tx.query("select pg_sleep(0.08)");
  };
  const inbox = bench.inbox({ "payment.charged": handle }, { handlerTimeoutMs: 200, retry: { attempts: 1 } });
  const events = Array.from({ length: 4 }, (_, i) => event(`e${i}`));
  expect(await inbox.processBatch(events)).toEqual(events.map(() => "executed"));
  expect(runs).toBe(4);
});

test("a statement_timeout that cuts the wait for the same event short is the infrastructure's", async () => {
  const charged = event("a");
  const first = await bench.pool.connect();
  await first.query("begin");
  await first.query("insert into idemkit.processed_event (event_id, consumer_name) values ($1, 'ledger')", [
    charged.eventId,
  ]);
  const impatient = bench.database.pool({ statement_timeout: 30 });
  const inbox = bench.inbox(record, { giveUpAfterMs: 60 }, impatient);
  await expect(inbox.process(charged)).rejects.toMatchObject({ code: "inbox_unavailable" });
  await first.query("rollback");
  first.release();
});

test("under SERIALIZABLE a duplicate of a running event is one all the same", async () => {
  const options = "-c default_transaction_isolation=serializable";
  const inboxes = [0, 1, 2].map(() => bench.inbox(record, {}, bench.database.pool({ max: 2, options })));
  const charged = event("a");
  const outcomes = await Promise.all(inboxes.map((inbox) => inbox.process(charged)));
  expect(outcomes.filter((outcome) => outcome === "executed")).toHaveLength(1);
  expect(outcomes.filter((outcome) => outcome === "duplicate")).toHaveLength(2);
  expect(await bench.effects()).toEqual(["a"]);
});

test.skipIf(!pgBouncerAvailable())(
  "behind a transaction-pooling proxy nothing is kept in a session",
  async () => {
    await using bouncer = await startPgBouncer(bench.database.connectionString, { poolSize: 2 });
    const pool = createPool(bouncer.connectionString, { max: 6 });
    const database = fromPg(pool, { preparedStatements: false });
    const inbox = createInbox({ database, consumer: "ledger", onGap: "hold" }, record);
    const events = Array.from({ length: 30 }, (_, i) => event(`e${i}`, { key: `order-${i}`, version: 1 }));
    const outcomes = await Promise.all([...events, ...events].map((each) => inbox.process(each)));
    expect(outcomes.filter((outcome) => outcome === "executed")).toHaveLength(30);
    expect(await bench.effects()).toHaveLength(30);
    await pool.end();
  },
);
