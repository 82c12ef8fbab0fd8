import type { PostgresDatabase } from "../postgres/connections.ts";
import { checkPostgresDatabase } from "../postgres/database.ts";
import { statementOf } from "../postgres/statement.ts";

/** How an outbox is doing: for metrics, readiness and whoever is paged. */
export interface OutboxStatus {
  /** Age of the oldest event that waits for a relay; 0 where none does. Events of parked keys don't count. */
  readonly oldestUnpublishedMs: number;
  /** Events that wait for a relay. Counting stops at a million. */
  readonly unpublished: number;
  /** Keys whose next event the broker refused; see `parkedOutboxKeys`. */
  readonly parkedKeys: number;
  /**
   * Age of the oldest transaction of this database that keeps deleted rows from being removed, which slows every read of
   * a relay down; 0 where there is none. Other roles' transactions are seen with the role `pg_monitor` only.
   */
  readonly oldestSnapshotMs: number;
}

const countingStopsAt = 1_000_000;

/** Reads the state of the outbox, in one statement. */
export async function outboxStatus<Tx>(database: PostgresDatabase<Tx>): Promise<OutboxStatus> {
  const { connections, schema } = checkPostgresDatabase(database);
  // Unprepared, as the relay's own statements are.
  const { text } = statementOf("outbox-status", schema);
  const { rows } = await connections.query({ text, values: [countingStopsAt] });
  const number = (name: string): number => Math.max(0, Number(rows[0]?.[name] ?? 0));
  return {
    oldestUnpublishedMs: number("oldest_unpublished_ms"),
    unpublished: number("unpublished"),
    parkedKeys: number("parked_keys"),
    oldestSnapshotMs: number("oldest_snapshot_ms"),
  };
}
