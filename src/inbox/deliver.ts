import type { Call, Session } from "../postgres/connections.ts";
import { keyText, openClaim } from "./claim.ts";
import type { Claimed } from "./claim.ts";
import { deadLetterCalls } from "./dead-letter-calls.ts";
import { firstEventIdAt } from "./event-id.ts";
import { idFaultOf } from "./id-policy.ts";
import type { IdFault } from "./id-policy.ts";
import { consumerCall } from "./internals.ts";
import type { Internals } from "./internals.ts";
import type { EventOutcome } from "./outcome.ts";
import type { Incoming } from "./stored-event.ts";
import { handlerOf, inUnit, parkEventCall } from "./unit.ts";
import type { Unit } from "./unit.ts";

/** What one transaction did. */
export interface Delivered {
  /** One for each event, in order. */
  readonly outcomes: readonly EventOutcome[];
  /**
   * Aggregates that may have events to apply now that waited behind a gap: one was filled, or a duplicate tells that
   * whoever filled it may not have come to applying them.
   */
  readonly filled: ReadonlySet<string>;
}

/** Settings of one transaction. */
export interface Delivery {
  readonly events: readonly Incoming[];
  readonly attempt: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Handles the events in order in one transaction with their records, without savepoints.
 * @throws DeliveryError when it was rolled back.
 */
export async function deliver<Tx>(
  inbox: Internals<Tx>,
  { events, attempt, signal }: Delivery,
): Promise<Delivered> {
  const { session, claimed } = await openClaim(inbox, events);
  if (claimed.recorded.size === 0) {
    await session.rollback();
    return { outcomes: events.map(() => "duplicate"), filled: new Set(claimed.gaps) };
  }
  return inUnit(inbox, session, signal, async (unit) => {
    const horizon = await horizonOf(inbox, session, claimed);
    const routes = events.map((event) => routeOf(inbox, horizon, event));
    await unit.prepare(events.filter((_, index) => routes[index] === "apply"));
    const outcomes: EventOutcome[] = [];
    for (const [index, event] of events.entries()) {
      const route = routes[index] ?? "duplicate";
      outcomes.push(
        route === "apply" ? await unit.apply(event, attempt) : await setAside(inbox, unit, event, route),
      );
    }
    if (attempt > 1) unit.later(...events.map(({ id }) => consumerCall(inbox, "inbox-attempt-delete", id)));
    await unit.commit();
    const suspects = outcomes.includes("duplicate") ? claimed.gaps : [];
    return { outcomes, filled: new Set([...unit.filled, ...suspects]) };
  });
}

/** Only days that are older than this expire. */
const dayMs = 86_400_000;

/**
 * The claim may have waited for a day to be emptied, and have read the horizon before that: asked again where an event is
 * old enough to have been recorded in such a day.
 */
async function horizonOf<Tx>(inbox: Internals<Tx>, session: Session<Tx>, claimed: Claimed): Promise<Claimed> {
  // Ids sort by their times, and those without one behind all others.
  const bound = firstEventIdAt(Math.floor(claimed.nowMs) - dayMs);
  if (![...claimed.recorded].some((id) => id < bound)) return claimed;
  const { rows } = await session.run({ ...inbox.statements["inbox-horizon"], values: [] });
  return { ...claimed, expiredBeforeMs: Number(rows[0]?.["expired_before_ms"] ?? claimed.expiredBeforeMs) };
}

/** What is to be done with an event, as far as it can be told before any handler has run. */
type Route = "apply" | "duplicate" | "follower" | Fault;
type Fault = IdFault | "unknown-type";

/** Decided for all events at once: between two statements of a handler the same code runs several times as long. */
function routeOf<Tx>(inbox: Internals<Tx>, claimed: Claimed, event: Incoming): Route {
  // The second of two in one batch finds its id taken, as it would in a batch of its own.
  if (!claimed.recorded.delete(event.id)) return "duplicate";
  const { topic, key } = event.message;
  if (claimed.parked.size > 0 && claimed.parked.has(keyText(topic, key))) return "follower";
  return idFaultOf(event, claimed, inbox.settings) ?? typeFaultOf(inbox, event) ?? "apply";
}

async function setAside<Tx>(
  inbox: Internals<Tx>,
  unit: Unit<Tx>,
  event: Incoming,
  route: Exclude<Route, "apply">,
): Promise<EventOutcome> {
  if (route === "duplicate") return "duplicate";
  if (route === "follower") {
    unit.later(parkEventCall(inbox, event, { reason: "follower" }));
    return "parked";
  }
  unit.later(...(await deadLetterCalls(inbox, unit.session, event, { reason: route, attempts: 0 })));
  return "dead-lettered";
}

function typeFaultOf<Tx>(inbox: Internals<Tx>, { message }: Incoming): "unknown-type" | undefined {
  const refused =
    inbox.settings.unknownTypes === "dead-letter" && handlerOf(inbox, message.type) === undefined;
  return refused ? "unknown-type" : undefined;
}

/** Records events and puts them away in the same transaction. */
export async function putAway<Tx>(
  inbox: Internals<Tx>,
  event: Incoming,
  callsOf: (unit: Unit<Tx>) => Promise<readonly Call[]>,
): Promise<boolean> {
  const { session, claimed } = await openClaim(inbox, [event]);
  if (claimed.recorded.size === 0) {
    await session.rollback();
    return false;
  }
  return inUnit(inbox, session, undefined, async (unit) => {
    unit.later(...(await callsOf(unit)));
    await unit.commit();
    return true;
  });
}
