import type { onRequestAsyncHookHandler } from "fastify";
import type { Database } from "idemkit";
import type { PoolClient } from "pg";
import type { Queryable } from "../../out/postgres/queryable.ts";

/** What every group of routes is built from. */
export interface RouteContext {
  /** For reads outside a protected operation. */
  readonly reads: Queryable;
  readonly database: Database<PoolClient>;
  readonly authentication: onRequestAsyncHookHandler;
}
