import { isIdemkitError } from "../errors.ts";
import { classify, sqlstateOf } from "../postgres/sqlstate.ts";
import type { Incoming } from "./stored-event.ts";

/** Whose fault it is that a transaction was rolled back. Only a handler's is counted as a try of its event (I11). */
export type FailureKind = "handler" | "conflict" | "unavailable";

/** Why a transaction of the inbox was rolled back. It never leaves the inbox. */
export class DeliveryError extends Error {
  override readonly name = "DeliveryError";
  readonly kind: FailureKind;
  /** The event whose handler ran last. */
  readonly event: Incoming | undefined;

  constructor(kind: FailureKind, cause: unknown, event?: Incoming) {
    super(kind, { cause });
    this.kind = kind;
    this.event = event;
  }
}

/** What is known of a transaction beside the error that it ended with. */
export interface FailedRun {
  /** Whether its connection is gone: then the error may be anything that the handler made of it. */
  readonly broken: boolean;
  /** Whether a handler outstayed the time that the transaction may sit idle, and so lost the connection itself. */
  readonly overslept: boolean;
  /** The event whose handler ran last; without one the failure is the inbox's own. */
  readonly event?: Incoming | undefined;
}

/**
 * Sorts what a transaction was rolled back for.
 * @returns a {@link DeliveryError}; or the error itself, where trying again would not help and no handler is to blame
 */
export function failureOf(
  error: unknown,
  run: FailedRun,
  isInfrastructure: (error: unknown) => boolean,
): unknown {
  if (isIdemkitError(error, "inbox_aborted")) return error;
  const { event, broken, overslept } = run;
  if (event !== undefined && (isIdemkitError(error, "handler_timed_out") || (broken && overslept))) {
    return new DeliveryError("handler", error, event);
  }
  const known = classify(error);
  if (known === "retry") return new DeliveryError("conflict", error, event);
  const waited = event === undefined && sqlstateOf(error) === queryCanceled;
  const away =
    broken || known === "unavailable" || waited || serverIsUnwell(error) || isInfrastructure(error);
  if (away) return new DeliveryError("unavailable", error, event);
  return event === undefined ? error : new DeliveryError("handler", error, event);
}

/** A `statement_timeout` of the session: before any handler has run it cut a wait of the inbox's own short. */
const queryCanceled = "57014";

/**
 * Faults of the server that no event is to blame for: out of disk, memory or connections (53), a file it can't read (58),
 * or a primary that became a standby (25006).
 */
function serverIsUnwell(error: unknown): boolean {
  const sqlstate = sqlstateOf(error);
  return (
    sqlstate !== undefined && (sqlstate.startsWith("53") || sqlstate.startsWith("58") || sqlstate === "25006")
  );
}

/** An error as it is stored beside an event: what an operator reads, cut to a bounded length. */
export function errorText(error: unknown): string {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return text.replaceAll("\0", "").slice(0, 2000);
}
