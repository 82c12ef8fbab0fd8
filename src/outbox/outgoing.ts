import { canonicalJson } from "../core/canonical-json.ts";
import { eventHeaders } from "../core/event.ts";
import type { OutgoingEvent } from "../core/event.ts";
import { IdemkitError, isIdemkitError } from "../errors.ts";
import { checkNames } from "../internal/options.ts";
import { activeTraceparent, isTraceparent } from "./trace-context.ts";

/** An event that was checked, ready for its row. */
export interface CheckedEvent {
  readonly eventId: string;
  readonly topic: string;
  readonly key: string;
  readonly type: string;
  readonly payload: Uint8Array;
  /** JSON of all further headers, or `null` for none. */
  readonly headers: string | null;
  readonly aggregateVersion: number | null;
  readonly sagaId: string | null;
  readonly stepName: string | null;
}

/** What a check needs beside the event. */
export interface CheckSettings {
  readonly eventId: string;
  readonly maxBytes: number;
  readonly traceparent?: string | undefined;
}

const eventNames = [
  "type",
  "key",
  "payload",
  "topic",
  "aggregateVersion",
  "sagaId",
  "stepName",
  "headers",
] as const;
const visibleAscii = /^[\x21-\x7e]{1,255}$/;
/** What Kafka accepts as the name of a topic. */
const topicName = /^(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}$/;
const maxTextLength = 255;
/** Longest key, in UTF-16 units: it is part of an index entry where its key is parked. */
const maxKeyLength = 512;
const reserved: ReadonlySet<string> = new Set(Object.values(eventHeaders));

/**
 * Checks an event and turns it into bytes, so that a later change of the caller's objects changes nothing.
 * @throws IdemkitError `outbox_event_invalid`, `outbox_event_too_large`.
 */
export function checkEvent(
  event: OutgoingEvent,
  { eventId, maxBytes, traceparent }: CheckSettings,
): CheckedEvent {
  checkNames("event", event, eventNames);
  const type = matching("type", event.type, visibleAscii, "must be 1 to 255 visible ASCII characters");
  const topic = matching(
    event.topic === undefined ? "type" : "topic",
    event.topic ?? type.split(".")[0],
    topicName,
    "must make the name of a topic: letters, digits, dots, hyphens and underscores",
  );
  const checked: CheckedEvent = {
    eventId,
    type,
    topic,
    key: text("key", event.key, maxKeyLength),
    payload: payloadOf(event.payload),
    headers: headersOf(event.headers, traceOf(traceparent)),
    aggregateVersion: event.aggregateVersion === undefined ? null : version(event.aggregateVersion),
    sagaId: event.sagaId === undefined ? null : text("sagaId", event.sagaId, maxTextLength),
    stepName: event.stepName === undefined ? null : text("stepName", event.stepName, maxTextLength),
  };
  checkSize(checked, maxBytes);
  return checked;
}

function checkSize({ type, key, payload, headers }: CheckedEvent, maxBytes: number): void {
  const bytes = payload.length + Buffer.byteLength(key) + Buffer.byteLength(headers ?? "");
  if (bytes <= maxBytes) return;
  throw new IdemkitError("outbox_event_too_large", { detail: `${type}: ${bytes} bytes of ${maxBytes}` });
}

function payloadOf(payload: OutgoingEvent["payload"]): Uint8Array {
  if (payload instanceof Uint8Array) return Uint8Array.from(payload);
  try {
    return Buffer.from(canonicalJson(payload), "utf8");
  } catch (cause) {
    if (!isIdemkitError(cause)) throw cause;
    throw faulty(`payload${cause.details.at ?? ""}`, "is not plain JSON (numbers must be exact)", cause);
  }
}

function headersOf(headers: OutgoingEvent["headers"], traceparent: string | undefined): string | null {
  const entries = Object.entries(headers ?? {});
  for (const [name, value] of entries) {
    matching(`headers.${name}`, name, visibleAscii, "must have a name of 1 to 255 visible ASCII characters");
    if (reserved.has(name.toLowerCase())) throw faulty(`headers.${name}`, "is a name that idemkit sets");
    if (typeof value !== "string") throw faulty(`headers.${name}`, "must be a string");
  }
  if (traceparent !== undefined) entries.push([eventHeaders.traceparent, traceparent]);
  return entries.length === 0 ? null : JSON.stringify(Object.fromEntries(entries));
}

function traceOf(given: string | undefined): string | undefined {
  if (given === undefined) return activeTraceparent();
  if (!isTraceparent(given)) throw faulty("traceparent", "must be one of W3C Trace Context, version 00");
  return given;
}

function version(given: number): number {
  if (Number.isSafeInteger(given) && given >= 0) return given;
  throw faulty("aggregateVersion", "must be a whole number from 0");
}

function matching(at: string, given: unknown, pattern: RegExp, what: string): string {
  if (typeof given === "string" && pattern.test(given)) return given;
  throw faulty(at, what);
}

/** PostgreSQL's text has no NUL, and a lone surrogate would be stored as U+FFFD: another key. */
function text(at: string, given: unknown, maxLength: number): string {
  const fits = typeof given === "string" && given !== "" && given.length <= maxLength;
  if (fits && given.isWellFormed() && !given.includes("\0")) return given;
  throw faulty(at, `must be well-formed text of 1 to ${maxLength} characters without NUL`);
}

function faulty(at: string, what: string, cause?: unknown): IdemkitError {
  return new IdemkitError("outbox_event_invalid", { detail: `${at} ${what}`, details: { at }, cause });
}
