import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

import { migrate, migrationSql, runOnce } from "idemkit";
import { fromPg } from "idemkit/pg";
import type pg from "pg";
import { afterEach, describe, expect, test } from "vitest";

import { createDatabase } from "../../support/index.ts";
import type { TestDatabase } from "../../support/index.ts";

const databases: TestDatabase[] = [];
afterEach(async () => {
  await Promise.all(databases.splice(0).map((database) => database.drop()));
});

async function emptyPool(options: pg.PoolConfig = {}): Promise<pg.Pool> {
  return (await emptyDatabase()).pool(options);
}

async function emptyDatabase(): Promise<TestDatabase> {
  const database = await createDatabase({ empty: true });
  databases.push(database);
  return database;
}

/** Columns, constraints and indexes of a schema, in an order that does not depend on how they came to be. */
async function shape(pool: pg.Pool, schema: string): Promise<unknown> {
  const { rows } = await pool.query(
    `select table_name, column_name, data_type, collation_name, is_nullable, column_default
     from information_schema.columns where table_schema = $1 order by 1, 2`,
    [schema],
  );
  const { rows: rules } = await pool.query(
    `select conname, pg_get_constraintdef(oid) as rule from pg_constraint
     where connamespace = quote_ident($1)::regnamespace order by 1`,
    [schema],
  );
  const { rows: indexes } = await pool.query(
    "select replace(indexdef, quote_ident($1), '') as definition from pg_indexes where schemaname = $1 order by 1",
    [schema],
  );
  return { rows, rules, indexes };
}

async function onceMore(pool: pg.Pool, schema: string): Promise<unknown> {
  const database = fromPg(pool, { schema });
  const call = { scope: "customer-1", operation: "charge", key: "key-1", command: 1 };
  const first = await runOnce(database, call, () => "charged");
  expect(first).toMatchObject({ outcome: "executed", value: "charged" });
  return runOnce(database, call, () => "again");
}

test.each([
  {},
  { pipeline: true },
  { options: "-c default_transaction_isolation=serializable" },
  {
    options: "-c default_transaction_isolation='repeatable read'".replace(
      "'repeatable read'",
      "repeatable\\ read",
    ),
  },
])("of twenty installs at once one works and the others find nothing to do (%o)", async (options) => {
  const pool = await emptyPool({ max: 20, ...options });
  const installs = await Promise.all(Array.from({ length: 20 }, () => migrate(fromPg(pool))));
  const worked = installs.filter(({ applied }) => applied.length > 0);
  expect(worked).toHaveLength(1);
  const { rows } = await pool.query("select number from idemkit.migration order by 1");
  expect(rows.map(({ number }: { number: number }) => number)).toEqual(worked[0]?.applied);
  expect(await onceMore(pool, "idemkit")).toMatchObject({ outcome: "replayed", value: "charged" });
});

test("an install that fails leaves nothing, and can be repeated", async () => {
  const pool = await emptyPool();
  await pool.query("create schema idemkit; create view idemkit.idempotency_record as select 1");
  await expect(migrate(fromPg(pool))).rejects.toMatchObject({ code: "42P07" });
  expect((await pool.query("select to_regclass('idemkit.migration') as name")).rows).toEqual([
    { name: null },
  ]);
  await pool.query("drop view idemkit.idempotency_record");
  expect((await migrate(fromPg(pool))).applied).not.toEqual([]);
});

describe("a database that a newer idemkit has migrated", () => {
  async function newer(breaking: boolean): Promise<pg.Pool> {
    const pool = await emptyPool();
    await migrate(fromPg(pool));
    await pool.query(
      "insert into idemkit.migration (number, name, breaking) values (9999, 'from-the-future', $1)",
      [breaking],
    );
    return pool;
  }

  test("is refused where the change breaks this version", async () => {
    await expect(migrate(fromPg(await newer(true)))).rejects.toMatchObject({
      code: "schema_newer",
      retryable: false,
    });
  });

  test("is warned of where it does not", async () => {
    const warnings: string[] = [];
    const done = await migrate(fromPg(await newer(false)), { onWarning: (text) => void warnings.push(text) });
    expect(done).toEqual({ applied: [], newer: [9999] });
    expect(warnings).toEqual([expect.stringMatching(/9999/)]);
  });
});

describe.each(["plain", 'We "ird"; drop table x; --', "схема", "select", "x".repeat(63)])(
  "in the schema %j",
  (schema) => {
    test("idemkit installs and works", async () => {
      const pool = await emptyPool();
      await migrate(fromPg(pool, { schema }));
      expect(await migrate(fromPg(pool, { schema }))).toEqual({ applied: [], newer: [] });
      expect(await onceMore(pool, schema)).toMatchObject({ outcome: "replayed", value: "charged" });
    });

    test("the printed SQL applies cleanly and makes the same tables", async () => {
      const [migrated, printed] = [await emptyPool(), await emptyPool()];
      await migrate(fromPg(migrated, { schema }));
      await printed.query(migrationSql(schema));
      expect(await shape(printed, schema)).toEqual(await shape(migrated, schema));
      expect(await migrate(fromPg(printed, { schema }))).toEqual({ applied: [], newer: [] });
      expect(await onceMore(printed, schema)).toMatchObject({ outcome: "replayed" });
    });
  },
);

test("the tables are logged: an unlogged one forgets every key in a crash", async () => {
  const pool = await emptyPool();
  await migrate(fromPg(pool));
  const { rows } = await pool.query(
    "select relname from pg_class where relnamespace = 'idemkit'::regnamespace and relpersistence <> 'p'",
  );
  expect(rows).toEqual([]);
});

test("two schemas of one database are two sets of keys", async () => {
  const pool = await emptyPool();
  await migrate(fromPg(pool, { schema: "one" }));
  await migrate(fromPg(pool, { schema: "two" }));
  await onceMore(pool, "one");
  await onceMore(pool, "two");
});

test.each(["", "x".repeat(64), "я".repeat(32), "a\0b"])("%j is no schema name", (schema) => {
  expect(() => fromPg({ connect: () => Promise.reject(new Error("never")) }, { schema })).toThrow(
    expect.objectContaining({ code: "option_invalid", details: { at: "schema" } }) as Error,
  );
});

test("a role that may use the tables but not make them finds nothing to do", async () => {
  const database = await emptyDatabase();
  const pool = database.pool();
  await migrate(fromPg(pool));
  const role = `clerk_${Math.random().toString(36).slice(2)}`;
  await pool.query(`create role ${role} login password 'p'; grant usage on schema idemkit to ${role};
    grant select, insert, update, delete on all tables in schema idemkit to ${role}`);
  try {
    const url = new URL(database.connectionString);
    url.username = role;
    url.password = "p";
    const clerk = database.pool({ connectionString: url.href });
    expect(await migrate(fromPg(clerk))).toEqual({ applied: [], newer: [] });
    expect(await onceMore(clerk, "idemkit")).toMatchObject({ outcome: "replayed" });
  } finally {
    await pool.query(`drop owned by ${role}; drop role ${role}`);
  }
});

test("without the tables every call says how to make them", async () => {
  const pool = await emptyPool();
  const call = { scope: "customer-1", operation: "charge", key: "key-1", command: 1 };
  await expect(runOnce(fromPg(pool), call, () => 1)).rejects.toMatchObject({
    code: "schema_missing",
    message: expect.stringMatching(/migrate/) as string,
  });
});

describe("the command line", () => {
  const program = fileURLToPath(new URL("../../../dist/cli/main.js", import.meta.url));
  const cli = (...args: string[]): { status: number | null; stdout: string; stderr: string } =>
    spawnSync(process.execPath, [program, ...args], {
      encoding: "utf8",
      env: { ...process.env, DATABASE_URL: "" },
    });

  test("prints the SQL without a database, and applies it to one", async () => {
    const database = await emptyDatabase();
    const printed = cli("migrate", "--print", "--schema", "two words");
    expect(printed).toMatchObject({ status: 0, stdout: migrationSql("two words"), stderr: "" });
    const given = ["migrate", "--schema", "two words", "--database-url", database.connectionString];
    expect(cli(...given)).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/applied migrations 1/) as string,
    });
    expect(cli(...given)).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/nothing to do/) as string,
    });
  });

  test.each([[], ["migrat"], ["migrate", "--frobnicate"], ["migrate"]])(
    "called wrongly (%j) ends with 2 and a usage",
    (...args) => {
      expect(cli(...args)).toMatchObject({
        status: 2,
        stdout: "",
        stderr: expect.stringMatching(/usage: idemkit/) as string,
      });
    },
  );

  test("without a server ends with 1 and the reason", () => {
    const ended = cli("migrate", "--database-url", "postgres://nobody@127.0.0.1:1/none");
    expect(ended).toMatchObject({ status: 1, stdout: "" });
    expect(ended.stderr).toMatch(/^idemkit: .*ECONNREFUSED/);
  });
});
