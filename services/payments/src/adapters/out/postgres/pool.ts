import { Pool } from "pg";

export interface PoolOptions {
  readonly connectionString: string;
  /** Connections of this process at most; several processes may share one database. */
  readonly size: number;
  readonly onError: (error: Error) => void;
}

/** Past this a request is told 503 instead of waiting on: it also bounds a handler that starves its own pool. */
const CONNECTION_TIMEOUT_MS = 5000;

/** A pool that outlives its database: a lost connection is logged and replaced, never an uncaught error. */
export const openPool = (options: PoolOptions): Pool => {
  const pool = new Pool({
    connectionString: options.connectionString,
    max: options.size,
    connectionTimeoutMillis: CONNECTION_TIMEOUT_MS,
    keepAlive: true,
    application_name: "payments",
  });
  pool.on("error", options.onError);
  // The pool listens to idle clients only; one that is lost while it is checked out would end the process.
  pool.on("connect", (client) => client.on("error", options.onError));
  return pool;
};
