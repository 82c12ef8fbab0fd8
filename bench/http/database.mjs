import { readFileSync } from "node:fs";

import { migrate } from "idemkit";
import { fromPg } from "idemkit/pg";
import pg from "pg";

const schema = readFileSync(new URL("schema.sql", import.meta.url), "utf8");

/**
 * A database of each variant's own, so that no table or index is another's.
 * @param {pg.Client} admin
 * @param {string} serverUrl
 * @param {string} variant
 * @returns {Promise<string>} its URL
 */
export async function createDatabase(admin, serverUrl, variant) {
  const name = `bench_${variant.replaceAll("-", "_")}`;
  await admin.query(`create database ${name}`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  const pool = new pg.Pool({ connectionString: url.href, max: 1, connectionTimeoutMillis: 10_000 });
  try {
    await pool.query(schema);
    await migrate(fromPg(pool));
  } finally {
    await pool.end();
  }
  return url.href;
}
