import { harmless } from "../internal/harmless.ts";
import { checkInteger, checkNames, invalid } from "../internal/options.ts";
import type { PostgresDatabase } from "../postgres/connections.ts";

/** How failures of handlers are tried again. Outages of the database are not counted by it. */
export interface RetryOptions {
  /**
   * Tries of one event, counted across processes and redeliveries; then it is poison.
   * @defaultValue 5
   */
  readonly attempts?: number;
  /**
   * The bound of the first pause; it doubles with each failure, and the pause is uniform below it (full jitter).
   * @defaultValue 100
   */
  readonly baseMs?: number;
  /** @defaultValue 10_000 */
  readonly maxMs?: number;
  /**
   * Tries within one call, for sources that bring an event again by themselves, such as webhooks: then the call rejects
   * with `event_handler_failed`, until `attempts` are used up.
   * @defaultValue as many as `attempts`
   */
  readonly perDelivery?: number;
}

/** Settings of an inbox beside its database. */
export interface InboxSettings {
  /** Who consumes: part of an event's identity here, so two consumers share a database, and it is never renamed. */
  readonly consumer: string;
  readonly retry?: RetryOptions;
  /**
   * What becomes of an event whose tries are used up. `"dead-letter"` stores it and goes on with its key's next events;
   * `"park"` holds the key: its later events are stored behind it, in order, until `releaseParkedKey`.
   * @defaultValue "dead-letter"
   */
  readonly poison?: "dead-letter" | "park";
  /**
   * Beside the row in `dead_letter`: `{ topic: true }` sends the event to `<its topic>.dead-letter` through the outbox,
   * in the same transaction.
   * @defaultValue { topic: false }
   */
  readonly deadLetters?: { readonly topic?: boolean };
  /**
   * Guards every event that carries an `aggregateVersion`: an older one than applied is stale, recorded and skipped. For
   * one that is ahead of the next, `"accept"` applies it (and those it overtook are stale); `"hold"` stores it until the
   * missing ones have been applied, and then applies it in order. Without this option versions are not looked at.
   */
  readonly onGap?: "hold" | "accept";
  /**
   * The version that an aggregate begins with, for `onGap: "hold"`; `"any"` where the consumer joins in the middle of
   * a topic, so that the first version it sees is accepted.
   * @defaultValue 1
   */
  readonly firstVersion?: number | "any";
  /**
   * Events whose type has no handler. `"skip"` records them as executed: a handler added later doesn't get them out of
   * order from a replay.
   * @defaultValue "skip"
   */
  readonly unknownTypes?: "skip" | "dead-letter";
  /**
   * Events whose id is older than all records that are kept, so that nobody can tell whether they took effect.
   * `"process"` runs their handler, perhaps for the second time, and warns.
   * @defaultValue "dead-letter"
   */
  readonly lateIds?: "dead-letter" | "process";
  /**
   * Events whose id lies more than five minutes in the future: a producer's clock is wrong. They are recognised when
   * they come again, so `"process"`, with a warning, is safe.
   * @defaultValue "process"
   */
  readonly futureIds?: "dead-letter" | "process";
  /**
   * Bounds one run of a handler; then it is rolled back, and the run counts as a failure.
   * @defaultValue 30_000
   */
  readonly handlerTimeoutMs?: number;
  /**
   * How long the transaction may sit idle between two statements before the server ends it: it frees the events of a
   * paused or cut-off process.
   * @defaultValue 10_000
   */
  readonly idleTimeoutMs?: number;
  /**
   * How long a statement may wait for a lock, where the session has no `lock_timeout` of its own. It bounds the wait for
   * the same event in another process.
   * @defaultValue 5_000
   */
  readonly lockTimeoutMs?: number;
  /**
   * How long a call goes on trying while the database is away or refuses; then it rejects with `inbox_unavailable`, and
   * may be repeated.
   * @defaultValue 10_000
   */
  readonly giveUpAfterMs?: number;
  /**
   * Keys of a batch that are handled beside each other when the batch had to be split because an event failed. Each
   * takes a connection.
   * @defaultValue 4
   */
  readonly splitConcurrency?: number;
  /** Names further errors of handlers that are the infrastructure's: tried again without being counted. */
  readonly isInfrastructure?: (error: unknown) => boolean;
  /** Told of events with ids that are late or in the future; by default a warning of the process. */
  readonly onWarning?: (message: string) => void;
}

/** Settings of an inbox. */
export interface InboxOptions<Tx> extends InboxSettings {
  readonly database: PostgresDatabase<Tx>;
}

/** The names of {@link InboxSettings}, for the check of unknown options. */
export const inboxSettingNames: readonly (keyof InboxSettings)[] = [
  "consumer",
  "retry",
  "poison",
  "deadLetters",
  "onGap",
  "firstVersion",
  "unknownTypes",
  "lateIds",
  "futureIds",
  "handlerTimeoutMs",
  "idleTimeoutMs",
  "lockTimeoutMs",
  "giveUpAfterMs",
  "splitConcurrency",
  "isInfrastructure",
  "onWarning",
];

/** The settings with their defaults. */
export interface Settings {
  readonly consumer: string;
  readonly retry: Required<RetryOptions>;
  readonly poison: "dead-letter" | "park";
  readonly deadLetterTopic: boolean;
  readonly onGap: "hold" | "accept" | undefined;
  readonly firstVersion: number | "any";
  readonly unknownTypes: "skip" | "dead-letter";
  readonly lateIds: "dead-letter" | "process";
  readonly futureIds: "dead-letter" | "process";
  readonly handlerTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly lockTimeoutMs: number;
  readonly giveUpAfterMs: number;
  readonly splitConcurrency: number;
  readonly isInfrastructure: (error: unknown) => boolean;
  readonly onWarning: (message: string) => void;
}

/**
 * Checks the options and resolves their defaults.
 * @throws IdemkitError `option_invalid`.
 */
export function settingsOf(options: InboxSettings): Settings {
  const { consumer, deadLetters = {} } = options;
  if (
    typeof consumer !== "string" ||
    !/^[a-z0-9]+(?:[-._:][a-z0-9]+)*$/.test(consumer) ||
    consumer.length > 100
  ) {
    throw invalid("consumer", "must be a lower-case name such as ledger, of at most 100 characters");
  }
  checkNames("deadLetters", deadLetters, ["topic"]);
  const within = (name: BoundedOption, fallback: number, min: number, max: number): number =>
    checkInteger(`${consumer}.${name}`, options[name] ?? fallback, min, max);
  return {
    consumer,
    retry: retryOf(options.retry ?? {}),
    poison: oneOf("poison", options.poison ?? "dead-letter", ["dead-letter", "park"]),
    deadLetterTopic: deadLetters.topic ?? false,
    onGap: options.onGap && oneOf("onGap", options.onGap, ["hold", "accept"]),
    firstVersion: firstVersionOf(options.firstVersion ?? 1),
    unknownTypes: oneOf("unknownTypes", options.unknownTypes ?? "skip", ["skip", "dead-letter"]),
    lateIds: oneOf("lateIds", options.lateIds ?? "dead-letter", ["dead-letter", "process"]),
    futureIds: oneOf("futureIds", options.futureIds ?? "process", ["dead-letter", "process"]),
    handlerTimeoutMs: within("handlerTimeoutMs", 30_000, 1, 3_600_000),
    idleTimeoutMs: within("idleTimeoutMs", 10_000, 100, 3_600_000),
    lockTimeoutMs: within("lockTimeoutMs", 5000, 1, 3_600_000),
    giveUpAfterMs: within("giveUpAfterMs", 10_000, 0, 3_600_000),
    splitConcurrency: within("splitConcurrency", 4, 1, 100),
    isInfrastructure: options.isInfrastructure ?? ((): boolean => false),
    onWarning: harmless(options.onWarning ?? warn),
  };
}

type BoundedOption =
  | "handlerTimeoutMs"
  | "idleTimeoutMs"
  | "lockTimeoutMs"
  | "giveUpAfterMs"
  | "splitConcurrency";

function retryOf(retry: RetryOptions): Required<RetryOptions> {
  checkNames("retry", retry, ["attempts", "baseMs", "maxMs", "perDelivery"]);
  return {
    attempts: checkInteger("retry.attempts", retry.attempts ?? 5, 1, 1_000_000),
    baseMs: checkInteger("retry.baseMs", retry.baseMs ?? 100, 0, 3_600_000),
    maxMs: checkInteger("retry.maxMs", retry.maxMs ?? 10_000, 0, 3_600_000),
    perDelivery: checkInteger("retry.perDelivery", retry.perDelivery ?? 1_000_000, 1, 1_000_000),
  };
}

function firstVersionOf(version: number | "any"): number | "any" {
  return version === "any" ? version : checkInteger("firstVersion", version, 0, Number.MAX_SAFE_INTEGER);
}

function oneOf<const T extends string>(name: string, given: T, known: readonly T[]): T {
  if (known.includes(given)) return given;
  throw invalid(name, `must be one of ${known.map((each) => JSON.stringify(each)).join(", ")}`);
}

function warn(message: string): void {
  process.emitWarning(message, "IdemkitWarning");
}
