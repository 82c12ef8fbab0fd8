import type { Result, Session } from "../postgres/connections.ts";
import { openStored, opened } from "./claim.ts";
import { deadLetterCalls } from "./dead-letter-calls.ts";
import type { ParkedKeyName } from "./inbox.ts";
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
 * @returns how many were applied, or found stale
 */
export async function fillGaps<Tx>(
  inbox: Internals<Tx>,
  aggregates: ReadonlySet<string>,
  persistence: Persistence,
): Promise<number> {
  let applied = 0;
  // It grows while it is gone through: what was held may fill a gap of another aggregate.
  const moved = new Set(aggregates);
  for (const aggregate of moved) {
    while (await filledOne(inbox, { aggregate, moved }, persistence)) applied += 1;
    moved.delete(aggregate);
  }
  return applied;
}

/** An aggregate whose gap is filled, and all that have moved on. */
interface Filling {
  readonly aggregate: string;
  readonly moved: Set<string>;
}

function filledOne<Tx>(inbox: Internals<Tx>, filling: Filling, persistence: Persistence): Promise<boolean> {
  const { aggregate } = filling;
  return withTries<Tx, boolean>(inbox, {
    ...persistence,
    step: (attempt) => applyNext(inbox, filling, attempt, persistence.signal),
    giveUp: (event, error, attempts) => poisoned(inbox, { aggregate, event }, error, attempts),
  });
}

/** Gives the missing versions of a key up, and applies what waits for them. */
export async function acceptGaps<Tx>(
  inbox: Internals<Tx>,
  { topic, key }: ParkedKeyName,
  persistence: Persistence,
): Promise<number> {
  const find = consumerCall(inbox, "inbox-held-find", topic, key);
  const query = (): Promise<Result> => opened(inbox, inbox.database.connections.query(find));
  for (let applied = 0; ;) {
    const { rows } = await persistently(inbox, query, persistence);
    const aggregates = new Set(rows.map(({ aggregate }) => aggregate as string));
    for (const each of aggregates) await persistently(inbox, () => skipTo(inbox, each), persistence);
    const now = await fillGaps(inbox, aggregates, persistence);
    if (now === 0) return applied;
    applied += now;
  }
}

/** Takes the version before the lowest one that waits for applied. */
async function skipTo<Tx>(inbox: Internals<Tx>, aggregate: string): Promise<void> {
  const session = await openStored(inbox);
  await inUnit(inbox, session, undefined, async (unit) => {
    const row = (await lockVersions(inbox, session, [aggregate])).get(aggregate);
    const next = await nextBehind(inbox, session, aggregate);
    const version = (next?.version ?? 0) - 1;
    const moves = next !== undefined && row !== undefined && version > (row.version ?? -1);
    if (moves) unit.later(saveVersions(inbox, new Map([[aggregate, { ...row, version }]])));
    await unit.commit();
  });
}

interface Waiting {
  readonly event: Incoming;
  readonly version: number;
}

async function nextBehind<Tx>(
  inbox: Internals<Tx>,
  session: Session<Tx>,
  aggregate: string,
): Promise<Waiting | undefined> {
  const { rows } = await session.run(consumerCall(inbox, "inbox-held-next", aggregate));
  const [row] = rows;
  return row === undefined ? undefined : { event: storedEvent(row), version: Number(row["waiting_version"]) };
}

/** @returns whether there may be another to apply */
async function applyNext<Tx>(
  inbox: Internals<Tx>,
  { aggregate, moved }: Filling,
  attempt: number,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const session = await openStored(inbox);
  return inUnit(inbox, session, signal, async (unit) => {
    const row = (await lockVersions(inbox, session, [aggregate])).get(aggregate);
    const next = await nextBehind(inbox, session, aggregate);
    if (next === undefined) {
      const rest = new Map(row?.held === true ? [[aggregate, { ...row, held: false }]] : []);
      if (rest.size > 0) unit.later(saveVersions(inbox, rest));
      await unit.commit();
      return false;
    }
    const verdict = row === undefined ? "gap" : judge(next.version, row, policyOf(inbox, aggregate));
    if (verdict !== "gap") {
      const goesOn = await apply(inbox, unit, next.event, { attempt, stale: verdict === "stale" });
      for (const each of unit.filled) moved.add(each);
      return goesOn;
    }
    await session.rollback();
    return false;
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
): Promise<boolean> {
  await unit.prepare([event]);
  const outcome = stale ? "stale" : await unit.apply(event, attempt);
  if (outcome !== "parked") unit.later(consumerCall(inbox, "inbox-parked-delete", event.id));
  if (attempt > 1) unit.later(consumerCall(inbox, "inbox-attempt-delete", event.id));
  await unit.commit();
  // Held again by its handler, which counts otherwise than we do: the next event of the aggregate tries it again.
  return outcome !== "parked";
}

/** An event from behind a gap whose tries are used up: those behind it go on waiting for its version. */
async function poisoned<Tx>(
  inbox: Internals<Tx>,
  { aggregate, event }: { readonly aggregate: string; readonly event: Incoming },
  error: unknown,
  attempts: number,
): Promise<boolean> {
  const session = await openStored(inbox);
  return inUnit(inbox, session, undefined, async (unit) => {
    await lockVersions(inbox, session, [aggregate]);
    const next = await nextBehind(inbox, session, aggregate);
    if (next?.event.id !== event.id) {
      // Another consumer has applied it meanwhile, and goes on with the aggregate.
      await session.rollback();
      return false;
    }
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
