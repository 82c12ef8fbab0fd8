import { createHash } from "node:crypto";

const uuid = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i;
const uuidV7 = /^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;

/** Whether the text is a UUID of any version, in any case. */
export function isUuid(text: string): boolean {
  return uuid.test(text);
}

/**
 * The id under which an event is recorded, always the same for the same event.
 *
 * A UUIDv7 is kept, since its order is the order of time that the partitions of `processed_event` go by. Every other
 * UUID would land in any day's partition by chance (a v4 id in two million in each day's) and be forgotten with it, so it
 * is recorded under an id derived from it, which sorts behind all times.
 */
export function recordedEventId(eventId: string): string {
  if (uuidV7.test(eventId)) return eventId;
  const lower = eventId.toLowerCase();
  return uuidV7.test(lower) || isDerived(lower) ? lower : derivedEventId("uuid", lower);
}

/**
 * An event id for what comes with an id that is not a UUID: a provider's webhook, a foreign topic. The same parts give
 * the same id in every process. It is a UUIDv8 (RFC 9562 section 5.8) made of SHA-256 over the length-prefixed parts,
 * whose first byte is `ff`, so that it sorts behind every UUIDv7 of the next eight thousand years.
 * @param parts - whose id it is, then the id: `derivedEventId("stripe", "evt_1")`
 */
export function derivedEventId(...parts: readonly [source: string, ...ids: string[]]): string {
  const hash = createHash("sha256").update("idemkit.event\0");
  for (const part of parts) hash.update(`${Buffer.byteLength(part)}:`).update(part);
  const hex = hash.digest("hex");
  const variant = "89ab"[Number.parseInt(hex[16] ?? "0", 16) % 4] ?? "8";
  return `ff${hex.slice(2, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/** The time inside a UUIDv7, in milliseconds since 1970; `undefined` for every other id. */
export function timeOfEventId(eventId: string): number | undefined {
  if (!uuidV7.test(eventId)) return undefined;
  return Number.parseInt(eventId.slice(0, 8) + eventId.slice(9, 13), 16);
}

/** The lowest UUID of a time: the bound of a partition. */
export function firstEventIdAt(ms: number): string {
  const hex = ms.toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}

function isDerived(eventId: string): boolean {
  return uuid.test(eventId) && eventId.startsWith("ff") && eventId[14] === "8";
}
