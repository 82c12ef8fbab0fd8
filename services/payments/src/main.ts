import { fromPg } from "idemkit/pg";
import { openPool } from "./adapters/out/postgres/pool.ts";
import { readConfig } from "./config.ts";
import { createLogger } from "./logger.ts";
import { runUntilTold } from "./run-until-told.ts";
import { startService } from "./service.ts";

const config = readConfig(process.env);
const logger = createLogger(config.logLevel);
const pool = openPool({
  connectionString: config.databaseUrl,
  size: config.poolSize,
  onError: (error) => logger.warn({ err: error }, "a database connection was lost"),
});

await runUntilTold(logger, () => startService({ config, pool, logger, database: fromPg(pool) }));
