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
): Promise<Replayed | undefined> {
  const session = await openStored(inbox);
  return inUnit(inbox, session, undefined, async (unit) => {
    // Another replay may have applied it meanwhile, or a person discarded it: it must not come back.
    const { rows } = await session.run(consumerCall(inbox, "inbox-dead-letter-find", event.id));
    if (rows.length === 0) return rolledBack(unit);
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
      giveUp: (event, error) => parkedAgain(inbox, name, event, error),
    });
    await fillGaps(inbox, released.filled, { signal });
    if (released.next === "failed") break;
    if (released.next === "applied") applied += 1;
    else if (await persistently(inbox, () => opensKey(inbox, name), { signal })) break;
  }
  if (accepting) applied += await acceptGaps(inbox, name, { signal });
  const { topic, key } = name;
  const count = (): ReturnType<typeof inbox.database.connections.query> =>
    opened(inbox, inbox.database.connections.query(consumerCall(inbox, "inbox-parked-count", topic, key)));
  const { rows } = await persistently(inbox, count, { signal });
  return { applied, parked: Number(rows[0]?.["parked"] ?? 0) };
}

interface Released {
  /** What the next event of the key did; `none` where nothing is parked. */
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
      await session.rollback();
      return { next: "none", filled: none };
    }
    unit.later(consumerCall(inbox, "inbox-parked-delete", event.id));
    await applyStored(inbox, unit, event, attempt);
    return { next: "applied", filled: unit.filled };
  });
}

/**
 * Opens a key that nothing is parked for any more. Read committed, whatever the session's default: behind the wait for
 * the key's row an older snapshot would miss the follower that it waited for.
 */
async function opensKey<Tx>(inbox: Internals<Tx>, { topic, key }: ParkedKeyName): Promise<boolean> {
  const session = await openStored(inbox, "read committed");
  return inUnit(inbox, session, undefined, async (unit) => {
    await session.run(consumerCall(inbox, "inbox-parked-key-lock", topic, key));
    const { rows } = await session.run(consumerCall(inbox, "inbox-parked-next", topic, key));
    if (rows.length === 0) unit.later(consumerCall(inbox, "inbox-parked-key-delete", topic, key));
    await unit.commit();
    return rows.length === 0;
  });
}

async function parkedAgain<Tx>(
  inbox: Internals<Tx>,
  { topic, key }: ParkedKeyName,
  event: Incoming,
  error: unknown,
): Promise<Released> {
  const session = await openStored(inbox);
  return inUnit(inbox, session, undefined, async (unit) => {
    const failed: Released = { next: "failed", filled: none };
    await session.run(consumerCall(inbox, "inbox-parked-key-lock", topic, key));
    const { rows } = await session.run(consumerCall(inbox, "inbox-parked-next", topic, key));
    if (rows[0]?.["event_id"] !== event.id) {
      // Another release has applied it meanwhile, and goes on with the key.
      await session.rollback();
      return failed;
    }
    unit.later(consumerCall(inbox, "inbox-attempt-delete", event.id));
    unit.later(parkEventCall(inbox, event, { reason: "poison", error: errorText(error) }));
    await unit.commit();
    return failed;
  });
}
