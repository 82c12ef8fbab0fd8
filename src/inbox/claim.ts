import type { Isolation } from "../core/ports.ts";
import { IdemkitError } from "../errors.ts";
import type { Row, Session } from "../postgres/connections.ts";
import { sqlstateOf } from "../postgres/sqlstate.ts";
import { DeliveryError, failureOf } from "./failure.ts";
import { consumerCall } from "./internals.ts";
import type { Internals } from "./internals.ts";
import { storable } from "./stored-event.ts";
import type { Incoming } from "./stored-event.ts";

/** The answer of the opening statement. */
export interface Claimed {
  /** The ids recorded now, for the first time. */
  readonly recorded: Set<string>;
  /** Which of the events' keys are parked; see {@link keyText}. */
  readonly parked: ReadonlySet<string>;
  /** Aggregates of the events' keys with events that wait behind a gap. */
  readonly gaps: readonly string[];
  /** Records of ids older than this are gone. */
  readonly expiredBeforeMs: number;
  /** The database's clock. */
  readonly nowMs: number;
}

/** A transaction whose opening statement has recorded the events. */
export interface Opened<Tx> {
  readonly session: Session<Tx>;
  readonly claimed: Claimed;
}

/** Opens a transaction and records the events in the same flight; waits for other transactions on the same events. */
export async function openClaim<Tx>(inbox: Internals<Tx>, events: readonly Incoming[]): Promise<Opened<Tx>> {
  const { idleTimeoutMs, lockTimeoutMs } = inbox.settings;
  const ids = events.map(({ id }) => id).join(",");
  const call = consumerCall(
    inbox,
    "inbox-claim",
    ids,
    String(idleTimeoutMs),
    String(lockTimeoutMs),
    keysOf(events),
  );
  const { session, first } = await opened(inbox, inbox.database.connections.begin(call)).catch(rerouted);
  const [row] = first.rows;
  if (row !== undefined) return { session, claimed: claimedOf(row) };
  await session.rollback();
  throw new IdemkitError("schema_missing", { detail: "processed_event_horizon is empty" });
}

/**
 * A row that was on its way to the default partition while its day was being made there finds that it no longer belongs:
 * sent again it goes to the day.
 */
function rerouted(error: unknown): never {
  throw sqlstateOf(error) === checkViolation ? new DeliveryError("conflict", error) : error;
}

const checkViolation = "23514";

/** Each key once: a batch holds few, and every text that is sent costs. */
function keysOf(events: readonly Incoming[]): string {
  const byTopic = new Map<string, Set<string>>();
  for (const { message } of events) {
    const seen = byTopic.get(message.topic);
    if (seen === undefined) byTopic.set(message.topic, new Set([message.key]));
    else seen.add(message.key);
  }
  const pairs = [...byTopic].flatMap(([topic, keys]) =>
    [...keys].map((key) => [storable(topic), storable(key)]),
  );
  return JSON.stringify(pairs);
}

/** Opens a transaction on events that are stored already. */
export async function openStored<Tx>(inbox: Internals<Tx>, isolation?: Isolation): Promise<Session<Tx>> {
  const { idleTimeoutMs, lockTimeoutMs } = inbox.settings;
  const values = [String(idleTimeoutMs), String(lockTimeoutMs)];
  const begun = inbox.database.connections.begin({ ...inbox.statements["inbox-open"], values }, isolation);
  return (await opened(inbox, begun)).session;
}

const undefinedTable = new Set(["42P01", "3F000"]);

/** Sorts the errors of a statement that runs before any handler does. */
export async function opened<Tx, T>({ settings }: Internals<Tx>, sent: Promise<T>): Promise<T> {
  try {
    return await sent;
  } catch (error) {
    const missing = undefinedTable.has(sqlstateOf(error) ?? "");
    if (missing) throw new IdemkitError("schema_missing", { cause: error });
    throw failureOf(error, { broken: false, overslept: false }, settings.isInfrastructure);
  }
}

/** A key of a topic as one text. */
export function keyText(topic: string, key: string): string {
  return `${topic.length}:${topic}${key}`;
}

function claimedOf(row: Row): Claimed {
  const topics = row["parked_topics"] as readonly string[];
  const keys = row["parked_keys"] as readonly string[];
  return {
    recorded: new Set((row["recorded"] as string | null)?.split(",")),
    parked: new Set(topics.map((topic, i) => keyText(topic, keys[i] ?? ""))),
    gaps: row["gaps"] as readonly string[],
    expiredBeforeMs: Number(row["expired_before_ms"]),
    nowMs: Number(row["now_ms"]),
  };
}
