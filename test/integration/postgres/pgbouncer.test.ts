import { migrate, runOnce } from "idemkit";
import { fromPg } from "idemkit/pg";
import type pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import {
  createDatabase,
  createPool,
  cutOff,
  pgBouncerAvailable,
  startPgBouncer,
  until,
} from "../../support/index.ts";
import type { PgBouncer, TestDatabase } from "../../support/index.ts";
import { charge, chargeOf, isolations } from "./support/payments.ts";
import type { PaymentOnce } from "./support/payments.ts";
import { gate } from "./support/steps.ts";

describe.skipIf(!pgBouncerAvailable())("behind PgBouncer in transaction mode", () => {
  let database: TestDatabase;
  let bouncer: PgBouncer;
  let direct: pg.Pool;
  const pools: pg.Pool[] = [];

  beforeAll(async () => {
    database = await createDatabase({ empty: true });
    // Few server connections for many clients, so that transactions do change places. Nothing is tracked: as Debian's
    // 1.18 does it, and as later ones do with this setting.
    bouncer = await startPgBouncer(database.connectionString, { poolSize: 3 });
    direct = database.pool();
    const { applied } = await migrate(fromPg(through(), { preparedStatements: false }));
    expect(applied).not.toEqual([]);
    await direct.query(
      "create table payment (id bigserial primary key, key text not null, amount int not null)",
    );
  });
  afterAll(async () => {
    await Promise.all(pools.map((pool) => pool.end()));
    await bouncer.stop();
    await database.drop();
  });

  function through(options: pg.PoolConfig = {}): pg.Pool {
    const pool = createPool(bouncer.connectionString, options);
    pools.push(pool);
    return pool;
  }

  async function one(sql: string): Promise<unknown> {
    return (await direct.query(sql)).rows[0];
  }

  async function locks(): Promise<number> {
    const { rows } = await direct.query<{ n: number }>(
      `select count(*)::int as n from pg_locks join pg_database on pg_database.oid = database
       where locktype = 'advisory' and datname = current_database()`,
    );
    return rows[0]?.n ?? -1;
  }

  test("twenty installs at once find one another's work", async () => {
    const pool = through({ max: 20 });
    const installs = await Promise.all(
      Array.from({ length: 20 }, () => migrate(fromPg(pool, { schema: "other", preparedStatements: false }))),
    );
    expect(installs.filter(({ applied }) => applied.length > 0)).toHaveLength(1);
  });

  describe.each(
    isolations.flatMap((isolation) => [false, true].map((pipeline) => ({ isolation, pipeline }))),
  )("under $isolation, pipeline: $pipeline", ({ isolation, pipeline }) => {
    test("a storm from four processes charges each key once, and nothing is left in any session", async () => {
      const processes = Array.from({ length: 4 }, () =>
        fromPg(through({ max: 5, pipeline }), { preparedStatements: false }),
      );
      const keys = Array.from({ length: 6 }, (_, i) => `storm-${isolation}-${String(pipeline)}-${i}`);
      const call = async (i: number): Promise<unknown> => {
        const key = keys[i % keys.length] ?? "";
        const [processOfCall = processes[0]] = processes.slice(i % 4);
        if (processOfCall === undefined) throw new Error("no process");
        const options = chargeOf(key, { isolation, whileRunning: { waitMs: 20_000 } });
        return runOnce(processOfCall, options, (once: PaymentOnce) => charge(once));
      };
      const outcomes = (await Promise.all(Array.from({ length: 120 }, (_, i) => call(i)))) as {
        outcome: string;
      }[];
      expect(outcomes.filter(({ outcome }) => outcome === "executed")).toHaveLength(keys.length);
      expect(outcomes.filter(({ outcome }) => outcome === "replayed")).toHaveLength(120 - keys.length);
      for (const key of keys) {
        expect(await one(`select count(*)::int as n from payment where key = '${key}'`)).toEqual({ n: 1 });
      }
      // An attempt that was told "locked" gives its transaction back without making the caller wait for it.
      await until(async () => (await locks()) === 0, { what: "no advisory lock left" });
      const left = await through({ max: 1 }).query(
        `select current_setting('idle_in_transaction_session_timeout') as idle, current_setting('lock_timeout') as lock,
                  coalesce(current_setting('idemkit.operation_id', true), '') as marker`,
      );
      expect(left.rows).toEqual([{ idle: "0", lock: "0", marker: "" }]);
    });
  });

  test("a client that is cut off inside its operation frees the key", async () => {
    const pool = through({ max: 1 });
    const inside = gate();
    let client: pg.PoolClient | undefined;
    pool.on("acquire", (acquired) => {
      client = acquired;
    });
    const doomed = runOnce(fromPg(pool, { preparedStatements: false }), chargeOf("cut-off"), async (once) => {
      const payment = await charge(once);
      inside.open();
      if (client !== undefined) cutOff(client);
      await once.tx.query("select 1");
      return payment;
    });
    await inside.opened;
    await expect(doomed).rejects.toMatchObject({ code: "idempotency_unavailable" });
    const again = runOnce(
      fromPg(through(), { preparedStatements: false }),
      chargeOf("cut-off", { whileRunning: { waitMs: 10_000 } }),
      charge,
    );
    expect(await again).toMatchObject({ outcome: "executed" });
    expect(await one("select count(*)::int as n from payment where key = 'cut-off'")).toEqual({ n: 1 });
  });

  test("named statements do not work where the proxy does not track them, which is why the switch is there", async () => {
    const named = fromPg(through({ max: 10 }));
    const calls = Array.from({ length: 60 }, (_, i) =>
      runOnce(named, chargeOf(`named-${i}`), (once: PaymentOnce) => charge(once)).then(
        () => "done",
        (error: unknown) => (error as { code?: string }).code,
      ),
    );
    const answers = new Set(await Promise.all(calls));
    const version = await versionOf(bouncer);
    if (version >= 1024) expect(answers).toEqual(new Set(["done"]));
    else expect([...answers].some((answer) => answer === "26000" || answer === "42P05")).toBe(true);
    const { rows } = await direct.query(
      "select key from payment where key like 'named-%' group by key having count(*) > 1",
    );
    expect(rows).toEqual([]);
  });
});

/** The proxy's version: from 1.24 on it tracks prepared statements without being told to. */
async function versionOf(bouncer: PgBouncer): Promise<number> {
  const url = new URL(bouncer.connectionString);
  url.pathname = "/pgbouncer";
  const pool = createPool(url.href, { max: 1 });
  try {
    const { rows } = await pool.query<{ version: string }>("show version");
    const [, major = 0, minor = 0] = /(\d+)\.(\d+)/.exec(rows[0]?.version ?? "") ?? [];
    return Number(major) * 1000 + Number(minor);
  } finally {
    await pool.end();
  }
}
