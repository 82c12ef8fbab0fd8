import type { PostgresDatabase, Row } from "../postgres/connections.ts";
import { checkPostgresDatabase } from "../postgres/database.ts";
import { statementOf } from "../postgres/statement.ts";
import { recordedEventId } from "./event-id.ts";

/** A dead letter as an operator sees it; without its payload, which may be personal. */
export interface DeadLetter {
  readonly consumer: string;
  /** As it came; replay and discard take it. */
  readonly eventId: string;
  readonly topic: string;
  readonly key: string;
  readonly type: string;
  /** `poison`, `late-id`, `future-id`, `unknown-type`, or what {@link Inbox.deadLetter} was given. */
  readonly reason: string;
  /** The handler's last error. */
  readonly error: string | undefined;
  readonly attempts: number;
  readonly at: Date;
}

/** A parked key as an operator sees it. */
export interface ParkedInboxKey {
  readonly consumer: string;
  readonly topic: string;
  readonly key: string;
  /** `poison`: opened by `releaseParkedKey`. `gap`: its events wait for a missing version. */
  readonly reason: "poison" | "gap";
  /** Events that wait. */
  readonly events: number;
  /** The error of the event that parked it. */
  readonly error: string | undefined;
  /** Since when the first of them waits. */
  readonly since: Date;
}

/** Which rows to list. */
export interface ListOptions {
  /** @defaultValue all consumers */
  readonly consumer?: string;
  /** @defaultValue 100 */
  readonly limit?: number;
}

/** The dead letters, oldest first. */
export async function deadLetters<Tx>(
  database: PostgresDatabase<Tx>,
  { consumer, limit = 100 }: ListOptions = {},
): Promise<readonly DeadLetter[]> {
  const { connections, schema } = checkPostgresDatabase(database);
  const statement = statementOf("inbox-dead-letter-list", schema);
  const { rows } = await connections.query({ ...statement, values: [consumer ?? null, limit] });
  return rows.map((row) => ({
    consumer: row["consumer_name"] as string,
    eventId: row["original_event_id"] as string,
    topic: row["topic"] as string,
    key: row["key"] as string,
    type: row["type"] as string,
    reason: row["reason"] as string,
    error: errorOf(row),
    attempts: Number(row["attempts"]),
    at: new Date(Number(row["at_ms"])),
  }));
}

/** The parked keys, oldest first. */
export async function parkedInboxKeys<Tx>(
  database: PostgresDatabase<Tx>,
  { consumer, limit = 100 }: ListOptions = {},
): Promise<readonly ParkedInboxKey[]> {
  const { connections, schema } = checkPostgresDatabase(database);
  const statement = statementOf("inbox-parked-list", schema);
  const { rows } = await connections.query({ ...statement, values: [consumer ?? null, limit] });
  return rows.map((row) => ({
    consumer: row["consumer_name"] as string,
    topic: row["topic"] as string,
    key: row["key"] as string,
    reason: row["reason"] as ParkedInboxKey["reason"],
    events: Number(row["events"]),
    error: errorOf(row),
    since: new Date(Number(row["since_ms"])),
  }));
}

/**
 * Forgets a dead letter. Its record stays: the event is not handled when it comes again.
 * @returns whether there was one
 */
export async function discardDeadLetter<Tx>(
  database: PostgresDatabase<Tx>,
  { consumer, eventId }: { readonly consumer: string; readonly eventId: string },
): Promise<boolean> {
  const { connections, schema } = checkPostgresDatabase(database);
  const statement = statementOf("inbox-dead-letter-delete", schema);
  const { count } = await connections.query({ ...statement, values: [consumer, recordedEventId(eventId)] });
  return count > 0;
}

function errorOf(row: Row): string | undefined {
  return (row["error"] as string | null) ?? undefined;
}
