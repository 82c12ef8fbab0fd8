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

/** Takes the network from under a client: it hears nothing from the server any more, and the server nothing from it. */
export function cutOff(client: pg.ClientBase): void {
  (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
}
