import type { Claimed } from "./claim.ts";
import { timeOfEventId } from "./event-id.ts";
import type { Settings } from "./settings.ts";
import type { Incoming } from "./stored-event.ts";

/** Clocks of producers differ by less than this; an id further ahead of the database tells of a wrong one. */
const futureToleranceMs = 300_000;

/** Why an event's id needs a policy: its records are gone, or its time has not come. */
export type IdFault = "late-id" | "future-id";

/**
 * Looks at the time inside a UUIDv7. An id without a time is recorded by the time of processing and is never late.
 * @returns the reason to put the event away, or `undefined` to go on; warns where the policy is to process it
 */
export function idFaultOf(
  { id, message }: Incoming,
  claimed: Claimed,
  settings: Settings,
): IdFault | undefined {
  const timeMs = timeOfEventId(id);
  if (timeMs === undefined) return undefined;
  const late = timeMs < claimed.expiredBeforeMs;
  if (!late && timeMs <= claimed.nowMs + futureToleranceMs) return undefined;
  if ((late ? settings.lateIds : settings.futureIds) === "dead-letter") return late ? "late-id" : "future-id";
  const what = late ? "is older than all records: it may take effect twice" : "lies in the future";
  settings.onWarning(`idemkit: event ${id} of type ${message.type} at consumer ${settings.consumer} ${what}`);
  return undefined;
}
