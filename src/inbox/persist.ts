import { IdemkitError } from "../errors.ts";
import { backoffMs } from "../internal/runtime.ts";
import { opened } from "./claim.ts";
import { DeliveryError, errorText } from "./failure.ts";
import { consumerCall } from "./internals.ts";
import type { Internals } from "./internals.ts";
import { aborted } from "./watch.ts";
import type { Incoming } from "./stored-event.ts";

/** Pauses while the database is away or refuses: short enough to go on soon, jittered so that consumers spread out. */
const outageBackoff = { baseMs: 20, maxMs: 1000 };

/** Bounds how many transactions run at once; a pause between two tries takes no place. */
export type Limit = <T>(work: () => Promise<T>) => Promise<T>;

/** How a step is tried. */
export interface Persistence {
  readonly signal?: AbortSignal | undefined;
  readonly limit?: Limit | undefined;
  /** Refusals by conflict (deadlock, serialization failure) after which to give this way of doing it up. */
  readonly maxConflicts?: number;
}

/**
 * Runs a transaction until it isn't the database's fault that it fails. Nothing is charged to an event here.
 * @throws IdemkitError `inbox_unavailable`, `inbox_aborted`; the step's DeliveryError of kind `handler`, and of kind
 * `conflict` after `maxConflicts`.
 */
export async function persistently<Tx, T>(
  { settings, runtime }: Internals<Tx>,
  step: () => Promise<T>,
  { signal, limit = unlimited, maxConflicts = Infinity }: Persistence = {},
): Promise<T> {
  const startedMs = runtime.monotonicMs();
  let conflicts = 0;
  for (let tries = 0; ; tries += 1) {
    if (signal?.aborted === true) throw aborted(signal);
    try {
      return await limit(step);
    } catch (error) {
      if (!(error instanceof DeliveryError) || error.kind === "handler") throw error;
      if (error.kind === "conflict") conflicts += 1;
      if (conflicts >= maxConflicts) throw error;
      if (runtime.monotonicMs() - startedMs >= settings.giveUpAfterMs) {
        throw new IdemkitError("inbox_unavailable", { cause: error.cause });
      }
    }
    await runtime.sleep(backoffMs(tries, outageBackoff, runtime.random), signal);
  }
}

/** One thing to do with an event, whose handler may fail. */
export interface Endeavour<T> extends Persistence {
  readonly step: (attempt: number) => Promise<T>;
  /** Ends it when the tries are used up. */
  readonly giveUp: (event: Incoming, error: unknown, attempts: number) => Promise<T>;
}

/**
 * Tries until the handler succeeds or its tries are used up. Each failure is counted in the database, so that the
 * tries of redeliveries and of other processes add up; a process that dies in a handler has not failed by that count.
 */
export async function withTries<Tx, T>(inbox: Internals<Tx>, endeavour: Endeavour<T>): Promise<T> {
  const { retry } = inbox.settings;
  let attempt = 1;
  const step = (): Promise<T> => endeavour.step(attempt);
  for (let tries = 1; ; tries += 1) {
    try {
      return await persistently(inbox, step, endeavour);
    } catch (error) {
      if (!(error instanceof DeliveryError) || error.event === undefined) throw error;
      const { event, cause } = error;
      const attempts = await persistently(inbox, () => charge(inbox, event, cause), endeavour);
      if (attempts >= retry.attempts) {
        return persistently(inbox, () => endeavour.giveUp(event, cause, attempts), endeavour);
      }
      if (tries >= retry.perDelivery) throw new IdemkitError("event_handler_failed", { cause });
      await inbox.runtime.sleep(backoffMs(attempts - 1, retry, inbox.runtime.random), endeavour.signal);
      attempt = attempts + 1;
    }
  }
}

/** Counts one failure of a handler, in a statement of its own: the handler's transaction is gone. */
async function charge<Tx>(inbox: Internals<Tx>, { id }: Incoming, cause: unknown): Promise<number> {
  const call = consumerCall(inbox, "inbox-attempt", id, errorText(cause));
  const { rows } = await opened(inbox, inbox.database.connections.query(call));
  return Number(rows[0]?.["attempts"] ?? 1);
}

function unlimited<T>(work: () => Promise<T>): Promise<T> {
  return work();
}
