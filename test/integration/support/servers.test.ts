import pg from "pg";
import { describe, expect, test } from "vitest";

import { createDatabase, pgBouncerAvailable, startCluster, startPgBouncer } from "../../support/index.ts";

async function ask(connectionString: string, sql: string): Promise<unknown> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    return (await client.query(sql)).rows[0];
  } finally {
    await client.end();
  }
}

test("a test database is a copy of the migrated template, and gone after drop", async () => {
  const database = await createDatabase();
  const pool = database.pool();
  expect((await pool.query("select to_regclass('idemkit.idempotency_record') as name")).rows).toEqual([
    { name: "idemkit.idempotency_record" },
  ]);
  await database.drop();
  await expect(ask(database.connectionString, "select 1")).rejects.toMatchObject({ code: "3D000" });
});

test("copies of the template can be made at the same time", async () => {
  const databases = await Promise.all(Array.from({ length: 6 }, () => createDatabase()));
  expect(new Set(databases.map(({ connectionString }) => connectionString)).size).toBe(6);
  await Promise.all(databases.map((database) => database.drop()));
});

test("an empty test database holds no schema of idemkit", async () => {
  await using database = await createDatabase({ empty: true });
  expect(await ask(database.connectionString, "select to_regnamespace('idemkit') as name")).toEqual({
    name: null,
  });
});

test("drop ends a pool whose client was never given back", async () => {
  const database = await createDatabase();
  const pool = database.pool();
  const client = await pool.connect();
  client.on("error", () => {});
  await database.drop();
  await expect(client.query("select 1")).rejects.toThrow();
});

test("a cluster keeps what was committed through a kill of all its processes", async () => {
  await using cluster = await startCluster({ durable: true });
  const database = await cluster.createDatabase();
  const pool = database.pool();
  await pool.query("create table payment (id int)");
  await pool.query("insert into payment values (1)");
  const before = cluster.pid;
  await cluster.kill();
  await expect(pool.query("select 1")).rejects.toThrow();
  await cluster.start();
  expect(cluster.pid).not.toBe(before);
  expect((await pool.query("select count(*)::int as n from payment")).rows).toEqual([{ n: 1 }]);
});

describe.skipIf(!pgBouncerAvailable())("behind PgBouncer", () => {
  test("two transactions of one client may run on different server connections", async () => {
    await using database = await createDatabase();
    await using bouncer = await startPgBouncer(database.connectionString, { poolSize: 2 });
    const [first, second] = [1, 2].map(() => new pg.Client({ connectionString: bouncer.connectionString }));
    if (!first || !second) throw new Error("two clients");
    await Promise.all([first.connect(), second.connect()]);
    await first.query("begin");
    const { rows: held } = await first.query("select pg_backend_pid() as pid");
    const { rows: other } = await second.query("select pg_backend_pid() as pid");
    expect(other).not.toEqual(held);
    await first.query("commit");
    await Promise.all([first.end(), second.end()]);
  });
});
