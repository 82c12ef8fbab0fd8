import { harmless, harmlessLogger } from "../internal/harmless.ts";
import { startLoop } from "../internal/loop.ts";
import type { Running } from "../internal/loop.ts";
import { checkInteger, checkNames, invalid } from "../internal/options.ts";
import type { PostgresDatabase, Row } from "../postgres/connections.ts";
import { statementOf } from "../postgres/statement.ts";
import type { OperationWithEffects } from "./with-effects.ts";

/** Settings of {@link startRescuer}. */
export interface RescuerOptions {
  /**
   * Pause between two looks for operations whose attempt is dead.
   * @defaultValue 5_000
   */
  readonly everyMs?: number;
  /**
   * Pause between two looks at an uncertain operation, whose `recover` functions are asked again.
   * @defaultValue 60_000
   */
  readonly uncertainEveryMs?: number;
  /**
   * How many operations are taken up at once.
   * @defaultValue 10
   */
  readonly batchSize?: number;
  /** @defaultValue `console` */
  readonly logger?: { error(message: string): void };
  /** Told what became of each operation that was taken up. */
  readonly onRescued?: (rescued: { readonly operation: string; readonly outcome: string }) => void;
}

/** The operations of one database that a rescuer knows how to go on with. */
type Rescuable = Pick<OperationWithEffects<never, unknown>, "operation" | "database" | "resume">;

/**
 * Finishes what dead processes left: operations of the external mode whose lease has ended are taken over and run from
 * their ledger, with the command that was stored at the claim. Start it in every process that serves; a lease keeps two
 * rescuers, and a repeat of the call, apart. It outlives outages of the database.
 * @throws IdemkitError `option_invalid`.
 */
export function startRescuer(operations: readonly Rescuable[], options: RescuerOptions = {}): Running {
  checkNames("startRescuer", options, ["everyMs", "uncertainEveryMs", "batchSize", "logger", "onRescued"]);
  const day = 86_400_000;
  const everyMs = checkInteger("everyMs", options.everyMs ?? 5000, 10, day);
  const uncertainMs = checkInteger("uncertainEveryMs", options.uncertainEveryMs ?? 60_000, 10, day);
  const batchSize = checkInteger("batchSize", options.batchSize ?? 10, 1, 1000);
  const logger = harmlessLogger(options.logger ?? console);
  const onRescued = harmless(options.onRescued ?? (() => {}));
  const database = databaseOf(operations);
  const byName = new Map(operations.map((operation) => [operation.operation, operation]));

  async function work(signal: AbortSignal): Promise<void> {
    const values = [[...byName.keys()], uncertainMs / 1000, batchSize];
    const { rows } = await database.connections.query({
      ...statementOf("lease-due", database.schema),
      values,
    });
    if (!signal.aborted) await Promise.all(rows.map(rescue));
  }

  async function rescue(row: Row): Promise<void> {
    const operation = byName.get(String(row["operation"]));
    if (operation === undefined) return;
    try {
      const { outcome } = await resume(database, operation, row);
      onRescued({ operation: operation.operation, outcome });
    } catch (error) {
      logger.error(
        `idemkit: rescuing ${operation.operation} failed: ${error instanceof Error ? error.message : String(error)}`,
      );
    }
  }

  return startLoop({
    everyMs,
    work,
    onError: (error) =>
      logger.error(`idemkit: the rescuer failed: ${error instanceof Error ? error.message : String(error)}`),
  });
}

function databaseOf(operations: readonly Rescuable[]): PostgresDatabase<unknown> {
  const [first, ...others] = operations;
  if (first === undefined) throw invalid("operations", "must name at least one operation");
  if (others.some(({ database }) => database !== first.database)) {
    throw invalid("operations", "must share one database");
  }
  return first.database;
}

function resume(
  { connections, schema }: PostgresDatabase<unknown>,
  operation: Rescuable,
  row: Row,
): Promise<{ readonly outcome: string }> {
  const identity = { scope: String(row["scope"]), operation: operation.operation, key: String(row["key"]) };
  const go = (): Promise<{ readonly outcome: string }> =>
    operation.resume(identity, row["fingerprint"] as Uint8Array, row["command"] as Uint8Array);
  if (row["disposition"] !== "uncertain") return go();
  const { scope, key } = identity;
  return connections
    .query({ ...statementOf("lease-reopen", schema), values: [scope, identity.operation, key] })
    .then(go);
}
