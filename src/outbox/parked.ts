import { checkInteger, checkNames } from "../internal/options.ts";
import type { PostgresDatabase } from "../postgres/connections.ts";
import { checkPostgresDatabase } from "../postgres/database.ts";
import { statementOf } from "../postgres/statement.ts";
import type { ParkedKey } from "./relay/parked-key.ts";
import { wakerOf } from "./wake.ts";

/** Which key of which topic. */
export interface OutboxKey {
  readonly topic: string;
  readonly key: string;
}

/** Settings of {@link releaseOutboxKey}. */
export interface ReleaseOptions {
  /**
   * Drop the refused event and send its followers only. It is gone for good: consumers never learn of it.
   * @defaultValue false: the refused event is sent again first
   */
  readonly discardRefused?: boolean;
}

/** The parked keys of an outbox, oldest first. @param limit - how many at most; 100 by default */
export async function parkedOutboxKeys<Tx>(
  database: PostgresDatabase<Tx>,
  limit = 100,
): Promise<readonly ParkedKey[]> {
  const { connections, schema } = checkPostgresDatabase(database);
  const values = [checkInteger("limit", limit, 1, 100_000)];
  const { rows } = await connections.query({ ...statementOf("outbox-parked", schema), values });
  return rows.map((row) => ({
    topic: row["topic"] as string,
    key: row["key"] as string,
    eventId: row["event_id"] as string,
    reason: row["reason"] as string,
    parkedAt: new Date(row["parked_at_ms"] as number),
    held: row["held"] as number,
  }));
}

/**
 * Lets a parked key go: its events go back into the outbox in their order, ahead of those enqueued since. Where the
 * broker still refuses the first, the key is parked again.
 * @returns how many events went back, or `undefined` where the key is not parked
 */
export async function releaseOutboxKey<Tx>(
  database: PostgresDatabase<Tx>,
  { topic, key }: OutboxKey,
  options: ReleaseOptions = {},
): Promise<number | undefined> {
  const { connections, schema, notify } = checkPostgresDatabase(database);
  checkNames("releaseOutboxKey", options, ["discardRefused"]);
  const values = [topic, key];
  // Read committed, whatever the session's default: the second statement must see what the first waited for.
  const unparked = { ...statementOf("outbox-unpark", schema), values };
  const { session, first } = await connections.begin(unparked, "read committed");
  try {
    const [row] = first.rows;
    if (row === undefined) {
      await session.rollback();
      return undefined;
    }
    if (options.discardRefused === true) {
      await session.run({ ...statementOf("outbox-discard", schema), values: [...values, row["event_id"]] });
    }
    const { count } = await session.run({ ...statementOf("outbox-release", schema), values });
    await session.commit();
    if (notify) wakerOf(connections, schema)([row["shard"] as number]);
    return count;
  } catch (error) {
    await session.rollback();
    throw error;
  }
}
