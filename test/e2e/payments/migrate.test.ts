import { expect, test } from "vitest";
import { migratePayments } from "../../../services/payments/src/adapters/out/postgres/migrate.ts";
import { createDatabase } from "../../support/index.ts";

test("a database that has another's tables is left as it is, and the message says what to do", async () => {
  const database = await createDatabase();
  try {
    const pool = database.pool();
    await pool.query("create table public.payment (id integer)");
    await expect(migratePayments(pool)).rejects.toThrow(
      /^migration \S+\.sql failed: relation "payment" already exists, .* give DATABASE_URL a database of its own$/u,
    );
    const { rows } = await pool.query<{ name: string }>(
      "select tablename as name from pg_tables where schemaname = 'public'",
    );
    expect(rows).toEqual([{ name: "payment" }]);
    await pool.query("drop table public.payment");
    await Promise.all(Array.from({ length: 5 }, () => migratePayments(pool)));
  } finally {
    await database.drop();
  }
});
