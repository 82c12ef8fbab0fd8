import { eventHeaders } from "../core/event.ts";
import type { EventMessage } from "../core/event.ts";
import { checkMessage } from "../inbox/check-message.ts";
import type { ConsumedRecord, TopicPartition } from "./port.ts";

/** How events are named on the wire. */
export type HeaderStyle =
  /** The names of `eventHeaders`: `event_id`, `event_type` and so on. */
  | "idemkit"
  /** CloudEvents 1.0 in binary mode: `ce_id`, `ce_type`, `ce_source` and so on. */
  | { readonly cloudEvents: { readonly source: string } };

/** Extension attributes of CloudEvents may hold lower-case letters and digits only. */
const cloudEventNames = {
  eventId: "ce_id",
  type: "ce_type",
  sagaId: "ce_sagaid",
  stepName: "ce_stepname",
  aggregateVersion: "ce_aggregateversion",
} as const;

const plainNames = {
  eventId: eventHeaders.eventId,
  type: eventHeaders.type,
  sagaId: eventHeaders.sagaId,
  stepName: eventHeaders.stepName,
  aggregateVersion: eventHeaders.aggregateVersion,
} as const;

function namesOf(style: HeaderStyle): Readonly<Record<keyof typeof plainNames, string>> {
  return style === "idemkit" ? plainNames : cloudEventNames;
}

/** The headers of a message on the wire. */
export function headersOf(message: EventMessage, style: HeaderStyle): Record<string, string> {
  const names = namesOf(style);
  const fixed = style === "idemkit" ? {} : cloudEventFixed(message, style.cloudEvents.source);
  return {
    ...message.headers,
    ...fixed,
    [names.eventId]: message.eventId,
    [names.type]: message.type,
    ...(message.sagaId === undefined ? {} : { [names.sagaId]: message.sagaId }),
    ...(message.stepName === undefined ? {} : { [names.stepName]: message.stepName }),
    ...(message.aggregateVersion === undefined
      ? {}
      : { [names.aggregateVersion]: String(message.aggregateVersion) }),
  };
}

function cloudEventFixed({ headers }: EventMessage, source: string): Record<string, string> {
  const traceparent = headers[eventHeaders.traceparent];
  return {
    ce_specversion: "1.0",
    ce_source: source,
    // The extension for distributed tracing; the plain header stays for those who look for that.
    ...(traceparent === undefined ? {} : { ce_traceparent: traceparent }),
  };
}

/** A record as an event, or what it lacks. */
export type ReadEvent =
  | { readonly event: EventMessage }
  | { readonly malformed: unknown; readonly key: string; readonly headers: Readonly<Record<string, string>> };

/** Reads a record; the key is taken as UTF-8, a missing value as no bytes. */
export function eventOf(from: TopicPartition, record: ConsumedRecord, style: HeaderStyle): ReadEvent {
  const names = namesOf(style);
  const { [names.eventId]: eventId = "", [names.type]: type = "", ...rest } = record.headers;
  const {
    [names.sagaId]: sagaId,
    [names.stepName]: stepName,
    [names.aggregateVersion]: version,
    ...headers
  } = rest;
  const key = record.key === null ? "" : Buffer.from(record.key).toString("utf8");
  const event: EventMessage = {
    eventId,
    type,
    topic: from.topic,
    key,
    payload: record.value ?? new Uint8Array(),
    headers,
    ...(sagaId === undefined ? {} : { sagaId }),
    ...(stepName === undefined ? {} : { stepName }),
    ...(version === undefined ? {} : { aggregateVersion: versionOf(version) }),
  };
  try {
    return { event: checkMessage(event) };
  } catch (error) {
    return { malformed: error, key, headers: record.headers };
  }
}

/** What isn't written as a version is no number: an empty text would be the version 0. */
function versionOf(text: string): number {
  return /^\d+$/.test(text) ? Number(text) : Number.NaN;
}
