import type { FastifyBaseLogger } from "fastify";
import { startMaintenance } from "idemkit";
import type { PostgresDatabase } from "idemkit";
import { createRemoteJWKSet } from "jose";
import type { Pool, PoolClient } from "pg";
import { createApp } from "./adapters/in/http/app.ts";
import { createAuthenticator } from "./adapters/in/http/authentication.ts";
import { closable } from "./adapters/in/http/close-server.ts";
import { httpProvider } from "./adapters/out/provider/http-provider.ts";
import type { Config } from "./config.ts";
import { providerWork, startBackground } from "./provider-work.ts";
import type { ProviderWork } from "./provider-work.ts";

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
  const work = workOf(options);
  const app = createApp({
    pool,
    work,
    database,
    logger,
    webhookSecret: config.webhookSecret,
    outboxAgeLimitMs: config.outboxAgeLimitMs,
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
  const { background: backgroundConfig } = config;
  const background =
    work !== undefined && backgroundConfig.isOn ? startBackground(work, backgroundConfig, logger) : undefined;
  const stop = async (): Promise<void> => {
    await close();
    await Promise.all([maintenance.stop(), background?.stop()]);
    await pool.end();
  };
  return { url, stop: () => (stopped ??= stop()) };
};

const workOf = ({ config, database }: ServiceOptions): ProviderWork | undefined => {
  const { provider, background } = config;
  if (provider === undefined) {
    return undefined;
  }
  return providerWork({ database, provider: httpProvider(provider), leaseMs: background.leaseMs });
};
