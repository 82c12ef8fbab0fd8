// The payments service with a database that kills the process at the step named by CRASH_POINT. For tests only.
import { fromPg } from "idemkit/pg";
import { crash, withCrashPoints } from "idemkit/testing";

import { openPool } from "../../../services/payments/dist/adapters/out/postgres/pool.js";
import { readConfig } from "../../../services/payments/dist/config.js";
import { createLogger } from "../../../services/payments/dist/logger.js";
import { startService } from "../../../services/payments/dist/service.js";

/** @type {import("../../../services/payments/src/config.ts").Config} */
const config = readConfig(process.env);
const pool = openPool({ connectionString: config.databaseUrl, size: config.poolSize, onError: () => {} });
const database = withCrashPoints(fromPg(pool), (point) => {
  if (point === process.env.CRASH_POINT) crash();
});
await startService({ config, pool, database, logger: createLogger(config.logLevel) });
