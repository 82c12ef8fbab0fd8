import type { FastifyBaseLogger } from "fastify";
import { startMaintenance } from "idemkit";
import type { PostgresDatabase } from "idemkit";
import { createRemoteJWKSet } from "jose";
import type { Pool, PoolClient } from "pg";
import { createApp } from "./adapters/in/http/app.ts";
import { createAuthenticator } from "./adapters/in/http/authentication.ts";
import { closable } from "./adapters/in/http/close-server.ts";
import type { Config } from "./config.ts";

export interface ServiceOptions {
  readonly config: Config;
  /** Ended by `stop`. */
  readonly pool: Pool;
  readonly database: PostgresDatabase<PoolClient>;
  readonly logger: FastifyBaseLogger;
}

/** A service that listens. `stop` takes no new work, finishes what is running, and may be called twice. */
export interface Service {
  readonly url: string;
  stop(): Promise<void>;
}

export const startService = async (options: ServiceOptions): Promise<Service> => {
  const { config, pool, database, logger } = options;
  let stopped: Promise<void> | undefined;
  const app = createApp({
    pool,
    database,
    logger,
    stopping: () => stopped !== undefined,
    authenticate: createAuthenticator({
      issuer: config.issuer,
      audience: config.audience,
      keys: createRemoteJWKSet(config.jwksUrl),
    }),
  });
  const close = closable(app);
  const url = await app.listen({ host: config.host, port: config.port });
  const maintenance = startMaintenance(database, { logger });
  const stop = async (): Promise<void> => {
    await close();
    await maintenance.stop();
    await pool.end();
  };
  return { url, stop: () => (stopped ??= stop()) };
};
