import type { Call } from "../postgres/connections.ts";
import { errorText } from "./failure.ts";
import { consumerCall } from "./internals.ts";
import type { Internals } from "./internals.ts";
import type { Incoming } from "./stored-event.ts";
import { parkEventCall } from "./unit.ts";

/** Parks the key of an event, with the event first. */
export function parkKeyCalls<Tx>(inbox: Internals<Tx>, event: Incoming, error: unknown): readonly Call[] {
  const { topic, key } = event.message;
  return [
    consumerCall(inbox, "inbox-park-key", topic, key),
    parkEventCall(inbox, event, { reason: "poison", error: errorText(error) }),
  ];
}
