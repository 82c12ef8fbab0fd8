import type { EventMessage } from "../core/event.ts";
import type { EventOutcome } from "./outcome.ts";

/** Settings of one delivery. */
export interface ProcessOptions {
  /** Gives the delivery up: what is in flight is rolled back, and the call rejects with `inbox_aborted`. */
  readonly signal?: AbortSignal | undefined;
}

/** Settings of one batch. */
export interface BatchOptions extends ProcessOptions {
  /**
   * Told of each event as soon as its outcome is final, by its place in the batch. A poison message that is being
   * retried holds the batch's promise back, but not the outcomes of other keys.
   */
  readonly onOutcome?: (outcome: EventOutcome, index: number) => void;
}

/** Settings of a release. */
export interface ReleaseOptions extends ProcessOptions {
  /**
   * Gives the missing versions up that events of the key wait for, and applies what waits. A missing one that comes after
   * all is stale then.
   * @defaultValue false
   */
  readonly acceptGaps?: boolean;
}

/** Why an event is put away without its handler. */
export interface DeadLetterReason {
  /** A short code, such as `malformed`. */
  readonly reason: string;
  readonly error?: unknown;
}

/** What {@link Inbox.releaseParkedKey} did. */
export interface ReleasedKey {
  /** Events that were applied now, or found stale. */
  readonly applied: number;
  /** Events that are still parked, because one of them failed again. */
  readonly parked: number;
}

/**
 * The receiving side of one consumer: every event takes effect once. Failures of handlers end as outcomes; what rejects
 * is the infrastructure, and then nothing of the event in question was committed, so that the same call may be repeated.
 */
export interface Inbox {
  readonly consumer: string;
  /** The event types with a handler. */
  readonly types: readonly string[];
  /**
   * Handles one event in one transaction with its record. Resolves when that has committed: acknowledge then.
   * @throws IdemkitError `inbox_unavailable` when the database stays away longer than `giveUpAfterMs`; `inbox_aborted`;
   * `event_handler_failed` where `retry.perDelivery`
   * is used up; `event_malformed` where the message has no id, type, topic or key to record it by (see {@link Inbox.deadLetter}).
   */
  process(event: EventMessage, options?: ProcessOptions): Promise<EventOutcome>;
  /**
   * Handles the events in order in one transaction; where one fails, each in its own, the keys beside each other and
   * each key in order. One outcome for each event, in order.
   * @throws as {@link Inbox.process}; events committed until then are duplicates when the call is repeated.
   */
  processBatch(events: readonly EventMessage[], options?: BatchOptions): Promise<readonly EventOutcome[]>;
  /**
   * Records the event and stores it as a dead letter, without its handler. An id that is no UUID is taken as it is: two
   * malformed messages of one topic need two of them.
   */
  deadLetter(event: EventMessage, reason: DeadLetterReason, options?: ProcessOptions): Promise<EventOutcome>;
  /** Runs the handler on a dead letter again; `undefined` where there is none of this id. */
  replayDeadLetter(eventId: string, options?: ProcessOptions): Promise<EventOutcome | undefined>;
  /** Applies the events of a parked key in order and opens the key again, unless one of them fails again. */
  releaseParkedKey(key: ParkedKeyName, options?: ReleaseOptions): Promise<ReleasedKey>;
}

/** A key of a topic. */
export interface ParkedKeyName {
  readonly topic: string;
  readonly key: string;
}
