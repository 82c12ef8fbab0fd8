import { startLoop } from "../internal/loop.ts";
import type { Running } from "../internal/loop.ts";
import { checkInteger, checkNames } from "../internal/options.ts";
import type { PostgresDatabase } from "../postgres/connections.ts";
import { deleteExpiredRecords } from "./retention.ts";

/** Where maintenance reports to; `console` fits. */
export interface MaintenanceLogger {
  info(message: string): void;
  error(message: string): void;
}

/** Settings of {@link startMaintenance}. */
export interface MaintenanceOptions {
  /**
   * Pause between two rounds. Expired records are new calls already, so the rounds only keep the table small.
   * @defaultValue 600_000: ten minutes
   */
  readonly everyMs?: number;
  /**
   * Rows of one delete, so that no round holds many locks or writes much WAL at once.
   * @defaultValue 1_000
   */
  readonly batchSize?: number;
  /** @defaultValue `console` */
  readonly logger?: MaintenanceLogger;
  /** Told how many expired records a round deleted. */
  readonly onDeleted?: (count: number) => void;
}

/**
 * Starts what keeps the tables small: the deletion of expired records (R-DIST-IDEM-5). Start it in every process that
 * serves; the instances share the work. It outlives outages of the database. Stop it before the pool ends.
 * @throws IdemkitError `option_invalid`.
 */
export function startMaintenance<Tx>(
  database: PostgresDatabase<Tx>,
  options: MaintenanceOptions = {},
): Running {
  checkNames("startMaintenance", options, ["everyMs", "batchSize", "logger", "onDeleted"]);
  const everyMs = checkInteger("everyMs", options.everyMs ?? 600_000, 10, 86_400_000);
  const batchSize = checkInteger("batchSize", options.batchSize ?? 1000, 1, 100_000);
  const { logger = console, onDeleted } = options;
  return startLoop({
    everyMs,
    work: async (signal) => {
      const count = await deleteExpiredRecords(database, batchSize, signal);
      onDeleted?.(count);
      if (count > 0) logger.info(`idemkit: deleted ${count} expired records`);
    },
    onError: (error) => logger.error(`idemkit: deleting expired records failed: ${textOf(error)}`),
  });
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
