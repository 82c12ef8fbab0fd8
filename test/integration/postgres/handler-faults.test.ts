import { runOnce, savepoint } from "idemkit";
import { fromPg } from "idemkit/pg";
import type pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { charge, chargeOf, isolations, paymentsDatabase } from "./support/payments.ts";
import type { PaymentOnce, Payments } from "./support/payments.ts";
import { gate } from "./support/steps.ts";

let payments: Payments;
beforeAll(async () => {
  payments = await paymentsDatabase();
  await payments.admin.query(`
    create table order_line (id int, payment int references payment deferrable initially deferred);
    create table account (id int primary key, balance int not null);
    insert into account values (1, 100), (2, 100);
    create procedure commit_inside() language plpgsql as $$ begin commit; end $$;`);
});
afterAll(() => payments[Symbol.asyncDispose]());

/** Runs a faulty handler after a charge, expects its error, and expects that the key is as new afterwards. */
async function failsWith(
  key: string,
  error: object,
  fault: (once: PaymentOnce) => unknown,
  database = payments.process(),
): Promise<void> {
  const records = await payments.records();
  const run = runOnce(database, chargeOf(key), async (once) => {
    const payment = await charge(once);
    await fault(once);
    return payment;
  });
  await expect(run).rejects.toMatchObject(error);
  expect(await payments.payments(key)).toEqual([]);
  expect(await payments.records()).toBe(records);
  expect(await runOnce(database, chargeOf(key), charge)).toMatchObject({ outcome: "executed" });
  expect(await payments.payments(key)).toHaveLength(1);
}

describe.each([false, true])("pipeline: %s", (pipeline) => {
  const at = (what: string): string => `${what}-${String(pipeline)}`;

  test.each([
    "commit",
    "end",
    "abort",
    "begin",
    "rollback",
    "select 1; commit",
    "commit and chain",
    "/**/ Commit work",
  ])("the handler's client refuses %j", async (text) => {
    await failsWith(
      at(text),
      { code: "transaction_control_refused" },
      ({ tx }) => tx.query(text),
      payments.process({ pipeline }),
    );
  });

  test.each(["do $$ begin commit; end $$", "call commit_inside()"])(
    "PostgreSQL itself refuses a COMMIT inside %j",
    async (text) => {
      await failsWith(
        at(text),
        { code: "2D000" },
        ({ tx }) => tx.query(text),
        payments.process({ pipeline }),
      );
    },
  );

  test("an error that the handler swallowed aborts the operation", async () => {
    const swallow = ({ tx }: PaymentOnce): Promise<unknown> =>
      tx.query("select 1 / 0").catch(() => undefined);
    await failsWith(
      at("swallowed"),
      { code: "transaction_aborted" },
      swallow,
      payments.process({ pipeline }),
    );
  });

  test("a statement that nobody awaited and that fails aborts the operation", async () => {
    await failsWith(
      at("not-awaited"),
      { code: "transaction_aborted" },
      ({ tx }) => {
        tx.query("select 1 / 0").catch(() => undefined);
      },
      payments.process({ pipeline }),
    );
  });

  test("a COMMIT that PostgreSQL turned into a roll-back is no success", async () => {
    const { session } = await payments.process({ pipeline }).connections.begin({ text: "select 1" });
    session.tx.query("select 1 / 0").catch(() => undefined);
    await expect(session.commit()).rejects.toMatchObject({ code: "transaction_aborted" });
  });

  test("a constraint that fails at COMMIT leaves nothing behind", async () => {
    await failsWith(
      at("deferred"),
      { code: "23503" },
      ({ tx }) => tx.query("insert into order_line values (1, -1)"),
      payments.process({ pipeline }),
    );
  });
});

/** The client below the guard: what a handler can reach only on purpose. */
function unguarded(): { database: ReturnType<typeof fromPg<pg.Pool>>; raw: () => pg.PoolClient } {
  const pool = payments.test.pool({ max: 1 });
  let last: pg.PoolClient | undefined;
  pool.on("acquire", (client) => {
    last = client;
  });
  return {
    database: fromPg(pool),
    raw: () => {
      if (last === undefined) throw new Error("nothing was acquired");
      return last;
    },
  };
}

test("a COMMIT behind the guard's back is seen by the transaction's status", async () => {
  const { database, raw } = unguarded();
  const run = runOnce(database, chargeOf("ended"), async (once) => {
    await raw().query("commit");
    return charge(once);
  });
  await expect(run).rejects.toMatchObject({ code: "transaction_ended" });
  expect(await runOnce(payments.process(), chargeOf("ended"), charge)).toMatchObject({ outcome: "executed" });
});

test("a COMMIT and a new BEGIN behind the guard's back are seen by the missing marker", async () => {
  const { database, raw } = unguarded();
  const run = runOnce(database, chargeOf("begun-again"), async (once) => {
    await raw().query("commit; begin");
    return charge(once);
  });
  await expect(run).rejects.toMatchObject({ code: "transaction_ended" });
  expect(await payments.payments("begun-again")).toEqual([]);
  expect(await runOnce(payments.process(), chargeOf("begun-again"), charge)).toMatchObject({
    outcome: "executed",
  });
});

test("a handler that asks the pool for a second connection gets an error in time, not a hang", async () => {
  const pool = payments.test.pool({ max: 2, connectionTimeoutMillis: 200 });
  const database = fromPg(pool);
  const bothIn = gate();
  let inside = 0;
  const run = (key: string): Promise<unknown> =>
    runOnce(database, chargeOf(key), async () => {
      inside += 1;
      if (inside === 2) bothIn.open();
      await bothIn.opened;
      await pool.query("select 1");
    });
  const results = await Promise.allSettled([run("second-1"), run("second-2")]);
  expect(results.map(({ status }) => status)).toContain("rejected");
  for (const each of results) {
    if (each.status === "rejected") {
      expect(String(each.reason)).toMatch(/timeout exceeded when trying to connect/);
    }
  }
  expect(pool.waitingCount).toBe(0);
});

test("a pool without a connection time-out is refused, and the option is named", () => {
  expect(() => fromPg(payments.test.pool({ connectionTimeoutMillis: 0 }))).toThrow(
    expect.objectContaining({
      code: "connection_timeout_missing",
      details: { at: "connectionTimeoutMillis" },
    }) as Error,
  );
});

test("the client of an operation that has ended refuses statements, by promise and by callback", async () => {
  const clients: pg.PoolClient[] = [];
  await runOnce(payments.process(), chargeOf("kept-client"), ({ tx }) => void clients.push(tx));
  const [kept] = clients;
  if (kept === undefined) throw new Error("the handler did not run");
  await expect(kept.query("select 1")).rejects.toMatchObject({ code: "transaction_closed" });
  const byCallback = await new Promise((resolve) => {
    kept.query("select 1", [], (error) => resolve(error));
  });
  expect(byCallback).toMatchObject({ code: "transaction_closed" });
  expect(() => kept.release()).toThrow(
    expect.objectContaining({ code: "transaction_control_refused" }) as Error,
  );
});

test("a savepoint of a handler that has ended cannot undo what the connection's next user writes", async () => {
  const pool = payments.test.pool({ max: 1 });
  const database = fromPg(pool);
  const [late, saved] = [gate(), gate()];
  let straggler: Promise<unknown> = Promise.resolve();
  const first = runOnce(database, chargeOf("straggler", { handlerTimeoutMs: 50 }), async ({ tx }) => {
    straggler = savepoint(tx, async () => {
      saved.open();
      await late.opened;
      throw new Error("too late");
    });
    straggler.catch(() => undefined);
    await late.opened;
  });
  await expect(first).rejects.toMatchObject({ code: "handler_timed_out" });
  await saved.opened;
  const next = await runOnce(database, chargeOf("next-user"), async (once) => {
    await once.tx.query("savepoint idemkit_1");
    const payment = await charge(once);
    late.open();
    await straggler.catch(() => undefined);
    return payment;
  });
  expect(next).toMatchObject({ outcome: "executed" });
  await expect(straggler).rejects.toMatchObject({ code: "transaction_closed" });
  expect(await payments.payments("next-user")).toHaveLength(1);
});

test("a failed part inside a savepoint can be caught, and the rest commits", async () => {
  const outcome = await runOnce(payments.process(), chargeOf("part"), async (once) => {
    const failed = await savepoint(once.tx, async () => {
      await charge(once, 99);
      await once.tx.query("select 1 / 0");
    }).catch((error: unknown) => (error as { code: string }).code);
    return { failed, ...(await savepoint(once.tx, () => charge(once))) };
  });
  expect(outcome).toMatchObject({ outcome: "executed", value: { failed: "22012", amount: 10 } });
  expect(await payments.payments("part")).toEqual([{ key: "part", amount: 10 }]);
});

test.each(isolations)("two commands that deadlock under %s both commit once", async (isolation) => {
  const bothIn = gate();
  let inside = 0;
  const run = (key: string, [from, to]: readonly [number, number]): ReturnType<typeof runOnce> =>
    runOnce(payments.process(), chargeOf(key, { isolation }), async (once) => {
      const payment = await charge(once);
      await once.tx.query("update account set balance = balance - 1 where id = $1", [from]);
      inside += 1;
      if (inside === 2) bothIn.open();
      await bothIn.opened;
      await once.tx.query("update account set balance = balance + 1 where id = $1", [to]);
      return payment;
    });
  const keys = [`there-${isolation}`, `back-${isolation}`] as const;
  const outcomes = await Promise.all([run(keys[0], [1, 2]), run(keys[1], [2, 1])]);
  expect(outcomes.map(({ outcome }) => outcome)).toEqual(["executed", "executed"]);
  expect(inside).toBeGreaterThan(2); // one of the two was run again
  for (const key of keys) expect(await payments.payments(key)).toHaveLength(1);
});

test.each(["repeatable read", "serializable"] as const)(
  "a command whose transaction is refused under %s is run again on a fresh one, under its operation id",
  async (isolation) => {
    const key = `refused-${isolation}`;
    const ids: string[] = [];
    const outcome = await runOnce(payments.process(), chargeOf(key, { isolation }), async (once) => {
      ids.push(once.operationId);
      await once.tx.query("select balance from account where id = 1");
      if (ids.length === 1) {
        await payments.admin.query("update account set balance = balance + 1 where id = 1");
      }
      await once.tx.query("update account set balance = balance - 1 where id = 1");
      return charge(once);
    });
    expect(outcome).toMatchObject({ outcome: "executed", operationId: ids[0] });
    expect(ids).toHaveLength(2);
    expect(ids[1]).toBe(ids[0]);
    expect(await payments.payments(key)).toHaveLength(1);
  },
);
