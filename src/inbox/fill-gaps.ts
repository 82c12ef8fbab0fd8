import { openStored, opened } from "./claim.ts";
import { deadLetterCalls } from "./dead-letter-calls.ts";
import { consumerCall } from "./internals.ts";
import type { Internals } from "./internals.ts";
import { parkKeyCalls } from "./park-key.ts";
import { persistently, withTries } from "./persist.ts";
import type { Persistence } from "./persist.ts";
import { storedEvent } from "./stored-event.ts";
import type { Incoming } from "./stored-event.ts";
import { inUnit, ownAggregate } from "./unit.ts";
import type { Unit } from "./unit.ts";
import { judge, lockVersions, saveVersions } from "./versions.ts";
import type { VersionPolicy } from "./versions.ts";

/**
 * Applies the events that waited behind a gap of these aggregates, in the order of their versions, each in a
 * transaction of its own: one that fails must not undo the event that filled the gap.
 */
export async function fillGaps<Tx>(
  inbox: Internals<Tx>,
  aggregates: ReadonlySet<string>,
  persistence: Persistence,
): Promise<void> {
  for (const aggregate of aggregates) {
    for (let found = true; found;) {
      const step = (attempt: number): Promise<boolean> =>
        applyNext(inbox, aggregate, attempt, persistence.signal);
      found = await withTries(inbox, {
        ...persistence,
        step,
        giveUp: (...failed) => poisoned(inbox, ...failed),
      });
    }
  }
}

/** Aggregates of these events' keys with events behind a gap. */
export async function suspectsOf<Tx>(
  inbox: Internals<Tx>,
  events: readonly Incoming[],
  persistence: Persistence,
): Promise<ReadonlySet<string>> {
  const versioned = events.filter(({ message }) => message.aggregateVersion !== undefined);
  if (versioned.length === 0) return new Set();
  const topics = versioned.map(({ message }) => message.topic);
  const keys = versioned.map(({ message }) => message.key);
  const call = consumerCall(inbox, "inbox-held-find", topics, keys);
  const query = (): Promise<{ readonly rows: readonly Readonly<Record<string, unknown>>[] }> =>
    opened(inbox, inbox.database.connections.query(call));
  const { rows } = await persistently(inbox, query, persistence);
  return new Set(rows.map(({ aggregate }) => aggregate as string));
}

/** @returns whether there may be another to apply */
async function applyNext<Tx>(
  inbox: Internals<Tx>,
  aggregate: string,
  attempt: number,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const session = await openStored(inbox);
  return inUnit(inbox, session, signal, async (unit) => {
    const row = (await lockVersions(inbox, session, [aggregate])).get(aggregate);
    const { rows } = await session.run(consumerCall(inbox, "inbox-held-next", aggregate));
    const next = rows[0] === undefined ? undefined : storedEvent(rows[0]);
    if (next === undefined) {
      const rest = new Map(row?.held === true ? [[aggregate, { ...row, held: false }]] : []);
      if (rest.size > 0) unit.later(saveVersions(inbox, rest));
      await unit.commit();
      return false;
    }
    const { aggregateVersion = 0 } = next.message;
    const verdict = row === undefined ? "gap" : judge(aggregateVersion, row, policyOf(inbox, aggregate));
    if (verdict === "gap") {
      await session.rollback();
      return false;
    }
    await apply(inbox, unit, next, { attempt, stale: verdict === "stale" });
    return true;
  });
}

/** An inbox that has stopped guarding takes what it held before; a handler's own guard has held, or it would not be here. */
function policyOf<Tx>({ settings }: Internals<Tx>, aggregate: string): VersionPolicy {
  const { onGap = "accept", firstVersion } = settings;
  return { onGap: aggregate.startsWith(ownAggregate) ? "hold" : onGap, firstVersion };
}

async function apply<Tx>(
  inbox: Internals<Tx>,
  unit: Unit<Tx>,
  event: Incoming,
  { attempt, stale }: { readonly attempt: number; readonly stale: boolean },
): Promise<void> {
  await unit.prepare([event]);
  const outcome = stale ? "stale" : await unit.apply(event, attempt);
  if (outcome !== "parked") unit.later(consumerCall(inbox, "inbox-parked-delete", event.id));
  if (attempt > 1) unit.later(consumerCall(inbox, "inbox-attempt-delete", event.id));
  await unit.commit();
}

/** An event from behind a gap whose tries are used up: those behind it go on waiting for its version. */
async function poisoned<Tx>(
  inbox: Internals<Tx>,
  event: Incoming,
  error: unknown,
  attempts: number,
): Promise<boolean> {
  const session = await openStored(inbox);
  return inUnit(inbox, session, undefined, async (unit) => {
    unit.later(consumerCall(inbox, "inbox-attempt-delete", event.id));
    if (inbox.settings.poison === "park") unit.later(...parkKeyCalls(inbox, event, error));
    else {
      unit.later(consumerCall(inbox, "inbox-parked-delete", event.id));
      unit.later(...(await deadLetterCalls(inbox, session, event, { reason: "poison", error, attempts })));
    }
    await unit.commit();
    return false;
  });
}
