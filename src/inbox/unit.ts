import type { Call, Session } from "../postgres/connections.ts";
import { failureOf } from "./failure.ts";
import { receivedEvent } from "./handler.ts";
import type { EventHandler } from "./handler.ts";
import { consumerCall } from "./internals.ts";
import type { Internals } from "./internals.ts";
import { columnsOf } from "./stored-event.ts";
import type { Incoming } from "./stored-event.ts";
import { versionGuard } from "./version-guard.ts";
import type { VersionVerdict } from "./versions.ts";
import { watch } from "./watch.ts";
import type { Watch } from "./watch.ts";

/** One transaction of the inbox: applies events, and collects what is written at its end. */
export interface Unit<Tx> {
  readonly session: Session<Tx>;
  /** Aggregates that moved on while events wait behind a gap of theirs: look at those after the commit. */
  readonly filled: ReadonlySet<string>;
  /** Locks the versions of all events that are guarded, in one statement. */
  prepare(events: readonly Incoming[]): Promise<void>;
  /** Guards the event by its version and runs its handler; or parks it behind a gap. */
  apply(event: Incoming, attempt: number): Promise<"executed" | "stale" | "parked">;
  /** A statement to send with the commit. */
  later(...calls: readonly Call[]): void;
  commit(): Promise<void>;
}

/** What a handler's `applyIfNewer` tells about the event that is being applied. */
export interface CurrentEvent {
  readonly event: Incoming;
  /** The verdict on it, as far as the handler asked. */
  verdict?: VersionVerdict;
  /** The gap that it waits behind. */
  behind?: Gap;
}

/** What `applyIfNewer` finds behind a handler's `tx`. */
export interface UnitState<Tx> {
  readonly inbox: Internals<Tx>;
  readonly session: Session<Tx>;
  readonly filled: Set<string>;
  current: CurrentEvent | undefined;
}

const states = new WeakMap<object, UnitState<unknown>>();

/** The transaction of the inbox behind a handler's `tx`. */
export function unitStateOf(tx: object): UnitState<unknown> | undefined {
  return states.get(tx);
}

/** Works in the session's transaction; what fails in it is sorted, and the transaction rolled back. */
export async function inUnit<Tx, T>(
  inbox: Internals<Tx>,
  session: Session<Tx>,
  signal: AbortSignal | undefined,
  work: (unit: Unit<Tx>) => Promise<T>,
): Promise<T> {
  const { handlerTimeoutMs, idleTimeoutMs, isInfrastructure } = inbox.settings;
  const state: UnitState<Tx> = { inbox, session, filled: new Set(), current: undefined };
  const watching = watch(handlerTimeoutMs, signal, inbox.runtime);
  states.set(session.tx as object, state as UnitState<unknown>);
  try {
    return await watching.during(work(unitOn(state, watching)));
  } catch (error) {
    const overslept = watching.overslept(idleTimeoutMs);
    // First: a handler may have hidden that the server cut the connection, and the rollback finds out.
    await session.rollback();
    throw failureOf(
      error,
      { broken: session.broken !== undefined, overslept, event: state.current?.event },
      isInfrastructure,
    );
  } finally {
    watching.end();
  }
}

function unitOn<Tx>(state: UnitState<Tx>, { begin, handled, close, signal }: Watch): Unit<Tx> {
  const { inbox, session, filled } = state;
  const { tx } = session;
  const calls: Call[] = [];
  const guard = versionGuard(inbox, session);

  function hold(event: Incoming, behind: Gap): "parked" {
    calls.push(parkEventCall(inbox, event, { reason: "gap", behind }));
    return "parked";
  }

  async function apply(event: Incoming, attempt: number): Promise<"executed" | "stale" | "parked"> {
    const current: CurrentEvent = { event };
    state.current = current;
    const guarded = guard.judge(event.message);
    if (guarded?.verdict === "stale") return "stale";
    if (guarded?.verdict === "gap") return hold(event, guarded);
    const handler = handlerOf(inbox, event.message.type);
    if (handler !== undefined) {
      begin();
      try {
        await handler(receivedEvent(event.message), { tx, signal, attempt });
      } finally {
        handled();
      }
    }
    if (current.behind !== undefined) return hold(event, current.behind);
    // What the handler's own guard calls stale was this aggregate's next version all the same.
    if (guarded?.advance() === true) filled.add(guarded.aggregate);
    return current.verdict === "stale" ? "stale" : "executed";
  }

  return {
    session,
    filled,
    apply,
    prepare: (events) => guard.lock(events),
    later: (...given) => void calls.push(...given),
    commit: async () => {
      close();
      await session.commit(...calls, ...guard.calls());
    },
  };
}

/** Begins the names of aggregates that a handler guards itself, with `applyIfNewer`. */
export const ownAggregate = "own:";

/** The handler of a type, or of all others; a type named like a member of every object has none. */
export function handlerOf<Tx>({ handlers }: Internals<Tx>, type: string): EventHandler<Tx> | undefined {
  return Object.hasOwn(handlers, type) ? handlers[type] : handlers["*"];
}

/** A gap: the version that has to wait, and of what. */
export interface Gap {
  readonly aggregate: string;
  readonly version: number;
}

/** Why an event is parked. */
export interface Parking {
  readonly reason: "poison" | "follower" | "gap";
  readonly error?: string;
  readonly behind?: Gap;
}

/** Stores an event to be applied later. */
export function parkEventCall<Tx>(inbox: Internals<Tx>, event: Incoming, parking: Parking): Call {
  const { reason, error = null, behind } = parking;
  const gap = [behind?.aggregate ?? null, behind?.version ?? null];
  return consumerCall(inbox, "inbox-park-event", ...columnsOf(event), reason, error, ...gap);
}
