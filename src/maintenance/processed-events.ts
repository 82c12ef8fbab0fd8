import { checkInteger, checkNames, invalid } from "../internal/options.ts";
import type { PostgresDatabase } from "../postgres/connections.ts";
import { checkPostgresDatabase } from "../postgres/database.ts";
import { statementOf } from "../postgres/statement.ts";
import type { StatementName } from "../postgres/statement.ts";
import { eventDayAt, eventDayOf } from "./event-day.ts";
import type { EventDay } from "./event-day.ts";
import { dropDay, expireDay, makeDay } from "./event-partitions.ts";

const hourMs = 3_600_000;
/** Between the horizon that deliveries read and the end of a day: clocks differ, and transactions are open for a while. */
const marginMs = hourMs;

/** How long the records of events are kept. The range of 24 to 72 hours is for commands; this one follows the topics. */
export interface ProcessedEventOptions {
  /**
   * How long an event is recognised when it comes again. Keep it above the retention of every topic consumed: a replay of
   * the whole topic, or a group that starts over, brings back all that is there. Kafka keeps seven days by default.
   * @defaultValue 336: fourteen days
   */
  readonly retentionHours?: number;
  /**
   * How long after its id was drawn an event may first be published: outages of the relay or the broker. A day expires
   * after the retention and this.
   * @defaultValue 24
   */
  readonly deliveryLagHours?: number;
  /**
   * Days whose partitions are made ahead. Where maintenance stands still for longer, rows go to the default partition.
   * @defaultValue 3
   */
  readonly aheadDays?: number;
  /**
   * Rows of one delete outside the days.
   * @defaultValue 1_000
   */
  readonly batchSize?: number;
}

/** {@link ProcessedEventOptions}, checked. */
export type ProcessedEventSettings = Required<ProcessedEventOptions>;

/** What one round of {@link retainProcessedEvents} did. */
export interface ProcessedEventRound {
  /** Partitions, by name. */
  readonly made: readonly string[];
  readonly expired: readonly string[];
  readonly dropped: readonly string[];
  /** What open transactions, another cleaner or too many rows kept from being done; the next round tries again. */
  readonly postponed: readonly string[];
  /** Rows deleted outside the days. */
  readonly swept: number;
}

/** @throws IdemkitError `option_invalid`. */
export function processedEventSettings(options: ProcessedEventOptions = {}): ProcessedEventSettings {
  checkNames("processedEvents", options, ["retentionHours", "deliveryLagHours", "aheadDays", "batchSize"]);
  return {
    retentionHours: hours("retentionHours", options.retentionHours ?? 336),
    deliveryLagHours: hours("deliveryLagHours", options.deliveryLagHours ?? 24),
    aheadDays: checkInteger("processedEvents.aheadDays", options.aheadDays ?? 3, 1, 60),
    batchSize: checkInteger("processedEvents.batchSize", options.batchSize ?? 1000, 1, 100_000),
  };
}

/**
 * One round of retention for `processed_event`: makes days ahead, forgets expired ones by TRUNCATE, drops those that an
 * earlier round forgot, and sweeps in batches what lies outside the days. Any number of instances may run it at once.
 * The role must own idemkit's tables.
 */
export async function retainProcessedEvents<Tx>(
  database: PostgresDatabase<Tx>,
  options: ProcessedEventOptions = {},
  signal?: AbortSignal,
): Promise<ProcessedEventRound> {
  checkPostgresDatabase(database);
  const settings = processedEventSettings(options);
  const plan = await planOf(database, settings);
  const postponed: string[] = [];
  const each = async (days: readonly EventDay[], work: typeof makeDay): Promise<string[]> => {
    const done: string[] = [];
    for (const day of days) {
      if (signal?.aborted === true) break;
      const changed = await work(database, day, signal);
      if (changed === "done") done.push(day.name);
      else if (changed !== "needless") postponed.push(day.name);
      // The horizon tells of all earlier days too, so an older day that was postponed must be first again.
      if (work === expireDay && changed === "busy") break;
    }
    return done;
  };
  const made = await each(plan.missing, makeDay);
  const dropped = await each(plan.empty, dropDay);
  const expired = await each(plan.over, expireDay);
  return { made, expired, dropped, postponed, swept: await sweep(database, settings, signal) };
}

interface Plan {
  readonly missing: readonly EventDay[];
  readonly over: readonly EventDay[];
  readonly empty: readonly EventDay[];
}

async function planOf<Tx>(
  { connections, schema }: PostgresDatabase<Tx>,
  { retentionHours, deliveryLagHours, aheadDays }: ProcessedEventSettings,
): Promise<Plan> {
  const { rows } = await connections.query({
    ...statementOf("processed-event-partitions", schema),
    values: [schema],
  });
  const nowMs = Number(rows[0]?.["now_ms"]);
  const expiredBeforeMs = Number(rows[0]?.["expired_before_ms"]);
  const names = new Set(rows[0]?.["names"] as readonly string[]);
  const days = [...names].flatMap((name) => eventDayOf(name) ?? []);
  const keptMs = (retentionHours + deliveryLagHours) * hourMs + marginMs;
  const wanted = Array.from({ length: aheadDays + 1 }, (_, offset) => eventDayAt(nowMs, offset));
  return {
    missing: wanted.filter(({ name }) => !names.has(name)),
    over: days.filter(({ endMs }) => endMs > expiredBeforeMs && endMs + keptMs <= nowMs),
    empty: days.filter(({ endMs }) => endMs <= expiredBeforeMs),
  };
}

const sweeps: readonly StatementName[] = [
  "processed-event-sweep-default",
  "processed-event-sweep-derived",
  "processed-event-sweep-attempts",
];

async function sweep<Tx>(
  { connections, schema }: PostgresDatabase<Tx>,
  { retentionHours, deliveryLagHours, batchSize }: ProcessedEventSettings,
  signal: AbortSignal | undefined,
): Promise<number> {
  const keptSeconds = ((retentionHours + deliveryLagHours) * hourMs) / 1000;
  let swept = 0;
  for (const name of sweeps) {
    const statement = statementOf(name, schema);
    for (let count = batchSize; count === batchSize; swept += count) {
      if (signal?.aborted === true) return swept;
      ({ count } = await connections.query({ ...statement, values: [keptSeconds, batchSize] }));
    }
  }
  return swept;
}

function hours(name: string, given: number): number {
  if (Number.isFinite(given) && given > 0) return given;
  throw invalid(`processedEvents.${name}`, `must be a number of hours, not ${String(given)}`);
}
