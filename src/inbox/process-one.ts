import { deadLetterCalls } from "./dead-letter-calls.ts";
import { deliver, putAway } from "./deliver.ts";
import { fillGaps } from "./fill-gaps.ts";
import { consumerCall } from "./internals.ts";
import type { Internals } from "./internals.ts";
import type { EventOutcome } from "./outcome.ts";
import { parkKeyCalls } from "./park-key.ts";
import { withTries } from "./persist.ts";
import type { Persistence } from "./persist.ts";
import type { Incoming } from "./stored-event.ts";

/** Handles one event to its outcome, and what it sets free. */
export async function processOne<Tx>(
  inbox: Internals<Tx>,
  event: Incoming,
  persistence: Persistence,
): Promise<EventOutcome> {
  const { signal } = persistence;
  const { outcome, filled } = await withTries<Tx, Processed>(inbox, {
    ...persistence,
    step: async (attempt) => {
      const { outcomes, filled: aggregates } = await deliver(inbox, { events: [event], attempt, signal });
      return { outcome: outcomes[0] ?? "duplicate", filled: aggregates };
    },
    giveUp: async (_, error, attempts) => ({
      outcome: await poisoned(inbox, event, error, attempts),
      filled: none,
    }),
  });
  await fillGaps(inbox, filled, persistence);
  return outcome;
}

interface Processed {
  readonly outcome: EventOutcome;
  readonly filled: ReadonlySet<string>;
}

const none: ReadonlySet<string> = new Set();

/** Records an event whose tries are used up, and stores it in the same transaction. */
async function poisoned<Tx>(
  inbox: Internals<Tx>,
  event: Incoming,
  error: unknown,
  attempts: number,
): Promise<EventOutcome> {
  const { poison } = inbox.settings;
  const done = await putAway(inbox, event, async ({ session }) => [
    consumerCall(inbox, "inbox-attempt-delete", event.id),
    ...(poison === "park"
      ? parkKeyCalls(inbox, event, error)
      : await deadLetterCalls(inbox, session, event, { reason: "poison", error, attempts })),
  ]);
  if (!done) return "duplicate";
  return poison === "park" ? "parked" : "dead-lettered";
}
