import { harmless, harmlessLogger } from "../internal/harmless.ts";
import { startLoop } from "../internal/loop.ts";
import type { Running } from "../internal/loop.ts";
import { checkInteger, checkNames } from "../internal/options.ts";
import type { PostgresDatabase } from "../postgres/connections.ts";
import { checkPostgresDatabase } from "../postgres/database.ts";
import { processedEventSettings, retainProcessedEvents } from "./processed-events.ts";
import type { ProcessedEventOptions, ProcessedEventRound } from "./processed-events.ts";
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
  /** How long the records of events are kept. Every service on one database must say the same. */
  readonly processedEvents?: ProcessedEventOptions;
  /** @defaultValue `console` */
  readonly logger?: MaintenanceLogger;
  /** Told how many expired records a round deleted. */
  readonly onDeleted?: (count: number) => void;
  /** Told what a round did to the records of events. */
  readonly onRetained?: (round: ProcessedEventRound) => void;
}

/**
 * Starts what keeps the tables small: the deletion of expired records of commands (R-DIST-IDEM-5), and the days of
 * `processed_event`. Start it in every process that serves; the instances share the work. It outlives outages of the
 * database. Stop it before the pool ends.
 * @throws IdemkitError `option_invalid`.
 */
export function startMaintenance<Tx>(
  database: PostgresDatabase<Tx>,
  options: MaintenanceOptions = {},
): Running {
  const known = ["everyMs", "batchSize", "processedEvents", "logger", "onDeleted", "onRetained"] as const;
  checkPostgresDatabase(database);
  checkNames("startMaintenance", options, known);
  const everyMs = checkInteger("everyMs", options.everyMs ?? 600_000, 10, 86_400_000);
  const batchSize = checkInteger("batchSize", options.batchSize ?? 1000, 1, 100_000);
  const kept = processedEventSettings(options.processedEvents);
  const logger = harmlessLogger(options.logger ?? console);
  const onDeleted = harmless(options.onDeleted ?? (() => {}));
  const onRetained = harmless(options.onRetained ?? (() => {}));
  const report = (what: string, error: unknown): void =>
    logger.error(`idemkit: ${what} failed: ${textOf(error)}`);
  return startLoop({
    everyMs,
    work: async (signal) => {
      // The one doesn't wait for what keeps the other from working, such as a role that may not make partitions.
      await retainProcessedEvents(database, kept, signal).then(onRetained, (error: unknown) => {
        if (!signal.aborted) report("making and expiring the days of processed_event", error);
      });
      const count = await deleteExpiredRecords(database, batchSize, signal);
      onDeleted(count);
      if (count > 0) logger.info(`idemkit: deleted ${count} expired records`);
    },
    onError: (error) => report("deleting expired records", error),
  });
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
