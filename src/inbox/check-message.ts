import type { EventMessage } from "../core/event.ts";
import { IdemkitError } from "../errors.ts";
import { isUuid } from "./event-id.ts";

/**
 * Checks what an event is recorded and ordered by. It came over a wire, so its types prove nothing.
 * @throws IdemkitError `event_malformed`, naming the member.
 */
export function checkMessage(message: EventMessage): EventMessage {
  if (typeof message !== "object" || message === null) throw malformed("message", "must be an event");
  const { eventId, type, topic, key, payload, headers, aggregateVersion } = message;
  if (typeof eventId !== "string" || !isUuid(eventId)) throw malformed("eventId", "must be a UUID");
  checkText("type", type);
  checkText("topic", topic);
  checkText("key", key);
  if (!(payload instanceof Uint8Array)) throw malformed("payload", "must be bytes");
  if (typeof headers !== "object" || headers === null) throw malformed("headers", "are missing");
  if (aggregateVersion !== undefined && !(Number.isSafeInteger(aggregateVersion) && aggregateVersion >= 0)) {
    throw malformed("aggregateVersion", "must be a whole number from 0");
  }
  return message;
}

function checkText(at: string, text: unknown): void {
  if (typeof text !== "string" || text === "") throw malformed(at, "is missing");
  if (!text.isWellFormed()) throw malformed(at, "holds half a surrogate pair, which PostgreSQL can't store");
  if (text.includes("\0")) throw malformed(at, "holds a NUL, which PostgreSQL can't store");
}

function malformed(at: string, detail: string): IdemkitError {
  return new IdemkitError("event_malformed", { detail: `${at} ${detail}`, details: { at } });
}
