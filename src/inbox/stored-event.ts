import type { EventMessage } from "../core/event.ts";
import type { Row } from "../postgres/connections.ts";
import { recordedEventId } from "./event-id.ts";

/** An event on its way through the inbox, with the id it is recorded under. */
export interface Incoming {
  readonly message: EventMessage;
  readonly id: string;
}

/** The message with the id it is recorded under. */
export function incoming(message: EventMessage): Incoming {
  return { message, id: recordedEventId(message.eventId) };
}

/** The columns of a stored event after the consumer, in the order of the statements that insert one. */
export function columnsOf({ message, id }: Incoming): readonly unknown[] {
  const { topic, key, type, payload, headers, aggregateVersion, sagaId, stepName, eventId } = message;
  return [
    id,
    storable(topic),
    storable(key),
    storable(type),
    payload,
    JSON.stringify(headers),
    aggregateVersion ?? null,
    orNull(sagaId),
    orNull(stepName),
    storable(eventId),
  ];
}

/** PostgreSQL's text holds neither NUL nor half a surrogate pair, and a malformed event must be storable all the same. */
export function storable(text: string): string {
  return (text.includes("\0") ? text.replaceAll("\0", "\uFFFD") : text).toWellFormed();
}

function orNull(text: string | undefined): string | null {
  return text === undefined ? null : storable(text);
}

/** A stored event, read back. */
export function storedEvent(row: Row): Incoming {
  const version = row["aggregate_version"];
  const sagaId = row["saga_id"] as string | null;
  const stepName = row["step_name"] as string | null;
  const { headers } = row;
  return {
    id: row["event_id"] as string,
    message: {
      eventId: row["original_event_id"] as string,
      type: row["type"] as string,
      topic: row["topic"] as string,
      key: row["key"] as string,
      payload: row["payload"] as Uint8Array,
      headers: (typeof headers === "string" ? JSON.parse(headers) : headers) as EventMessage["headers"],
      ...(version === null ? {} : { aggregateVersion: Number(version) }),
      ...(sagaId === null ? {} : { sagaId }),
      ...(stepName === null ? {} : { stepName }),
    },
  };
}
