import { fromPg } from "idemkit/pg";
import type { EventOutcome, PostgresDatabase } from "idemkit";
import type { Pool, PoolClient } from "pg";
import type { Logger } from "pino";
import { openPool } from "./adapters/out/postgres/pool.ts";
import { readEventConfig } from "./event-config.ts";
import type { EventConfig } from "./event-config.ts";
import { createLogger } from "./logger.ts";

/** What the relay's and the consumers' processes begin with. */
export interface EventProcess {
  readonly config: EventConfig;
  readonly logger: Logger;
  readonly pool: Pool;
  readonly database: PostgresDatabase<PoolClient>;
}

export const openEventProcess = (): EventProcess => {
  const config = readEventConfig(process.env);
  const logger = createLogger(config.logLevel);
  const pool = openPool({
    connectionString: config.databaseUrl,
    size: config.poolSize,
    onError: (error) => logger.warn({ err: error }, "a database connection was lost"),
  });
  return { config, logger, pool, database: fromPg(pool) };
};

/** Whoever started this process with a channel to it can count along. */
export const reportOutcome = (consumer: string, outcome: EventOutcome): void => {
  process.send?.({ consumer, outcome });
};
