import type { EventMessage } from "../../core/event.ts";
import type { Row } from "../../postgres/connections.ts";

/** An event of the outbox with its place in it. */
export interface QueuedEvent {
  /** The row's id, as text: `bigint`. */
  readonly id: string;
  /** Whether its key was parked when it was read. */
  readonly parked: boolean;
  readonly message: EventMessage;
}

/** A row of `outbox-read.sql`. */
export function queuedEvent(row: Row): QueuedEvent {
  const version = row["aggregate_version"];
  const sagaId = row["saga_id"] as string | null;
  const stepName = row["step_name"] as string | null;
  const headers = row["headers"] as string | null;
  return {
    id: String(row["id"]),
    parked: row["parked"] as boolean,
    message: {
      eventId: row["event_id"] as string,
      type: row["type"] as string,
      topic: row["topic"] as string,
      key: row["key"] as string,
      payload: row["payload"] as Uint8Array,
      ...(version === null ? {} : { aggregateVersion: Number(version) }),
      ...(sagaId === null ? {} : { sagaId }),
      ...(stepName === null ? {} : { stepName }),
      headers: headers === null ? {} : (JSON.parse(headers) as EventMessage["headers"]),
    },
  };
}

/** The ids as PostgreSQL writes an array: one text is cheaper to send than thousands of values. */
export function idArray(events: readonly QueuedEvent[]): string {
  return `{${events.map(({ id }) => id).join(",")}}`;
}

/** One name for the events that keep their order among each other. */
export function orderKey({ topic, key }: Pick<EventMessage, "topic" | "key">): string {
  return `${topic}\0${key}`;
}
