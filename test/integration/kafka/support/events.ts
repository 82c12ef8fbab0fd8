import type { EventMessage } from "idemkit";
import { v7 } from "uuid";

/** An event as the relay would hand it to a publisher. */
export function eventOf(
  topic: string,
  key: string,
  n: number,
  more: Partial<EventMessage> = {},
): EventMessage {
  return {
    eventId: v7(),
    type: "payment.charged",
    topic,
    key,
    payload: new TextEncoder().encode(JSON.stringify({ n })),
    headers: {},
    ...more,
  };
}
