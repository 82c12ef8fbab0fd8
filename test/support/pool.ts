import pg from "pg";

/**
 * A pool as a service should have one: bounded waits, and a listener, since a server that goes away makes idle
 * clients emit an error that would end the process.
 */
export function createPool(connectionString: string, options: pg.PoolConfig = {}): pg.Pool {
  const pool = new pg.Pool({ connectionString, connectionTimeoutMillis: 10_000, ...options });
  pool.on("error", () => {});
  return pool;
}
