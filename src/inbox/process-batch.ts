import { isIdemkitError } from "../errors.ts";
import { deliver } from "./deliver.ts";
import { DeliveryError } from "./failure.ts";
import { fillGaps } from "./fill-gaps.ts";
import type { Internals } from "./internals.ts";
import { keyText } from "./claim.ts";
import type { EventOutcome } from "./outcome.ts";
import { persistently } from "./persist.ts";
import { processOne } from "./process-one.ts";
import { slots } from "./slots.ts";
import type { Incoming } from "./stored-event.ts";

/** A batch that deadlocks again and again goes on event by event: those transactions hold fewer locks. */
const maxConflicts = 3;

/** How a batch is handled. */
export interface BatchRun {
  readonly signal?: AbortSignal | undefined;
  readonly onOutcome: (outcome: EventOutcome, index: number) => void;
}

/** Handles the events in one transaction; where an event fails, each in its own. */
export async function processBatch<Tx>(
  inbox: Internals<Tx>,
  events: readonly Incoming[],
  run: BatchRun,
): Promise<readonly EventOutcome[]> {
  return (await together(inbox, events, run)) ?? (await oneByOne(inbox, events, run));
}

/** @returns nothing where the batch has to be split; a failure in company is charged to nobody */
async function together<Tx>(
  inbox: Internals<Tx>,
  events: readonly Incoming[],
  { signal, onOutcome }: BatchRun,
): Promise<readonly EventOutcome[] | undefined> {
  try {
    const step = (): ReturnType<typeof deliver> => deliver(inbox, { events, attempt: 1, signal });
    const { outcomes, filled } = await persistently(inbox, step, { signal, maxConflicts });
    // Told last: behind it nobody delivers again what filled the gap, and so nobody would look for what waited.
    await fillGaps(inbox, filled, { signal });
    outcomes.forEach(onOutcome);
    return outcomes;
  } catch (error) {
    if (error instanceof DeliveryError || isIdemkitError(error, "outbox_too_many_keys")) return undefined;
    throw error;
  }
}

/** Each key in order, the keys beside each other: none waits for the pauses of another that fails. */
async function oneByOne<Tx>(
  inbox: Internals<Tx>,
  events: readonly Incoming[],
  { signal, onOutcome }: BatchRun,
): Promise<readonly EventOutcome[]> {
  const limit = slots(inbox.settings.splitConcurrency);
  const outcomes: EventOutcome[] = [];
  const lane = async (indexes: readonly number[]): Promise<void> => {
    for (const index of indexes) {
      const event = events[index];
      if (event === undefined) continue;
      const outcome = await processOne(inbox, event, { signal, limit });
      outcomes[index] = outcome;
      onOutcome(outcome, index);
    }
  };
  const ended = await Promise.allSettled([...lanesOf(events).values()].map(lane));
  for (const each of ended) if (each.status === "rejected") throw each.reason;
  return outcomes;
}

/** The places of each key's events, in order. */
function lanesOf(events: readonly Incoming[]): ReadonlyMap<string, readonly number[]> {
  const lanes = new Map<string, number[]>();
  for (const [index, { message }] of events.entries()) {
    const key = keyText(message.topic, message.key);
    const lane = lanes.get(key);
    if (lane === undefined) lanes.set(key, [index]);
    else lane.push(index);
  }
  return lanes;
}
