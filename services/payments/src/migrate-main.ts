import { openPool } from "./adapters/out/postgres/pool.ts";
import { migrateAll } from "./migrate.ts";

const connectionString = process.env["DATABASE_URL"] ?? "";
if (connectionString === "") {
  throw new Error("DATABASE_URL must be set");
}
const pool = openPool({ connectionString, size: 2, onError: () => {} });
try {
  await migrateAll(pool);
} finally {
  await pool.end();
}
