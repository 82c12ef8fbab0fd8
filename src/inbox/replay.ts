import { openStored, opened } from "./claim.ts";
import { deadLetterCalls } from "./dead-letter-calls.ts";
import { acceptGaps, fillGaps } from "./fill-gaps.ts";
import { errorText } from "./failure.ts";
import type { ParkedKeyName, ReleasedKey, ReleaseOptions } from "./inbox.ts";
import { consumerCall } from "./internals.ts";
import type { Internals } from "./internals.ts";
import type { EventOutcome } from "./outcome.ts";
import { persistently, withTries } from "./persist.ts";
import type { Persistence } from "./persist.ts";
import { storedEvent } from "./stored-event.ts";
import type { Incoming } from "./stored-event.ts";
import { inUnit, parkEventCall } from "./unit.ts";
import type { Unit } from "./unit.ts";

interface Replayed {
  readonly outcome: EventOutcome;
  readonly filled: ReadonlySet<string>;
}

const none: ReadonlySet<string> = new Set();

/** Runs the handler on a dead letter again; it goes with the transaction that applies it. */
export async function replayDeadLetter<Tx>(
  inbox: Internals<Tx>,
  id: string,
  { signal }: Persistence,
): Promise<EventOutcome | undefined> {
  const replayed = await withTries<Tx, Replayed | undefined>(inbox, {
    signal,
    step: async (attempt) => {
      const session = await openStored(inbox);
      return inUnit(inbox, session, signal, async (unit) => {
        const { rows } = await session.run(consumerCall(inbox, "inbox-dead-letter-find", id));
        const event = rows[0] === undefined ? undefined : storedEvent(rows[0]);
        if (event === undefined) return rolledBack(unit);
        unit.later(consumerCall(inbox, "inbox-dead-letter-delete", id));
        return { outcome: await applyStored(inbox, unit, event, attempt), filled: unit.filled };
      });
    },
    giveUp: (event, error, attempts) => failedAgain(inbox, event, error, attempts),
  });
  if (replayed !== undefined) await fillGaps(inbox, replayed.filled, { signal });
  return replayed?.outcome;
}

async function rolledBack<Tx>({ session }: Unit<Tx>): Promise<undefined> {
  await session.rollback();
}

async function applyStored<Tx>(
  inbox: Internals<Tx>,
  unit: Unit<Tx>,
  event: Incoming,
  attempt: number,
): Promise<EventOutcome> {
  unit.later(consumerCall(inbox, "inbox-record", event.id));
  if (attempt > 1) unit.later(consumerCall(inbox, "inbox-attempt-delete", event.id));
  await unit.prepare([event]);
  const outcome = await unit.apply(event, attempt);
  await unit.commit();
  return outcome;
}

async function failedAgain<Tx>(
  inbox: Internals<Tx>,
  event: Incoming,
  error: unknown,
  attempts: number,
): Promise<Replayed> {
  const session = await openStored(inbox);
  return inUnit(inbox, session, undefined, async (unit) => {
    unit.later(consumerCall(inbox, "inbox-attempt-delete", event.id));
    const quiet = { ...inbox, settings: { ...inbox.settings, deadLetterTopic: false } };
    unit.later(...(await deadLetterCalls(quiet, session, event, { reason: "poison", error, attempts })));
    await unit.commit();
    return { outcome: "dead-lettered", filled: none };
  });
}

/** Applies the events of a parked key in order, each in a transaction of its own, and opens the key behind the last. */
export async function releaseParkedKey<Tx>(
  inbox: Internals<Tx>,
  name: ParkedKeyName,
  { signal, acceptGaps: accepting = false }: ReleaseOptions,
): Promise<ReleasedKey> {
  let applied = 0;
  for (;;) {
    const released = await withTries<Tx, Released>(inbox, {
      signal,
      step: (attempt) => releaseNext(inbox, name, attempt, signal),
      giveUp: (event, error) => parkedAgain(inbox, event, error),
    });
    await fillGaps(inbox, released.filled, { signal });
    if (released.next !== "applied") break;
    applied += 1;
  }
  if (accepting) applied += await acceptGaps(inbox, name, { signal });
  const { topic, key } = name;
  const count = (): ReturnType<typeof inbox.database.connections.query> =>
    opened(inbox, inbox.database.connections.query(consumerCall(inbox, "inbox-parked-count", topic, key)));
  const { rows } = await persistently(inbox, count, { signal });
  return { applied, parked: Number(rows[0]?.["parked"] ?? 0) };
}

interface Released {
  /** What the next event of the key did: `none` is left, and the key is open. */
  readonly next: "applied" | "none" | "failed";
  readonly filled: ReadonlySet<string>;
}

async function releaseNext<Tx>(
  inbox: Internals<Tx>,
  { topic, key }: ParkedKeyName,
  attempt: number,
  signal: AbortSignal | undefined,
): Promise<Released> {
  const session = await openStored(inbox);
  return inUnit(inbox, session, signal, async (unit) => {
    await session.run(consumerCall(inbox, "inbox-parked-key-lock", topic, key));
    const { rows } = await session.run(consumerCall(inbox, "inbox-parked-next", topic, key));
    const event = rows[0] === undefined ? undefined : storedEvent(rows[0]);
    if (event === undefined) {
      unit.later(consumerCall(inbox, "inbox-parked-key-delete", topic, key));
      await unit.commit();
      return { next: "none", filled: none };
    }
    unit.later(consumerCall(inbox, "inbox-parked-delete", event.id));
    await applyStored(inbox, unit, event, attempt);
    return { next: "applied", filled: unit.filled };
  });
}

async function parkedAgain<Tx>(inbox: Internals<Tx>, event: Incoming, error: unknown): Promise<Released> {
  const session = await openStored(inbox);
  return inUnit(inbox, session, undefined, async (unit) => {
    unit.later(consumerCall(inbox, "inbox-attempt-delete", event.id));
    unit.later(parkEventCall(inbox, event, { reason: "poison", error: errorText(error) }));
    await unit.commit();
    return { next: "failed", filled: none };
  });
}
