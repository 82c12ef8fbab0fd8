/** An event as a test saw it committed or delivered. */
export interface SeenEvent {
  readonly eventId: string;
  /** Events of one key keep their order; events of different topics are told apart by the test, if it needs that. */
  readonly key: string;
}

/** What a delivery came to. `lost`, `foreign` and `inverted` are faults; a re-send is none, before an inbox. */
export interface DeliveryCheck {
  /** Events that were committed. */
  readonly events: number;
  /** Deliveries, re-sends among them. */
  readonly delivered: number;
  /** Deliveries of an event that had been delivered before. Behind an inbox each of them is a duplicate. */
  readonly resent: number;
  /** Committed and never delivered. */
  readonly lost: number;
  /** Delivered and never committed. */
  readonly foreign: number;
  /** First deliveries that came after one of a later event of their key. */
  readonly inverted: number;
  /** The first few faults in words, for the message of a failed test. */
  readonly faults: readonly string[];
}

const maxFaults = 10;

/**
 * Compares what was delivered with what was committed. Order is checked over the first delivery of each event: a re-send
 * may come at any time, and carries the same id (I10).
 * @param committed - the events, those of one key in the order of their commits
 * @param delivered - every delivery, in the order of the receiver's log
 */
export function checkDelivery(
  committed: readonly SeenEvent[],
  delivered: readonly SeenEvent[],
): DeliveryCheck {
  const places = placesOf(committed);
  const first = new Set<string>();
  const latest = new Map<string, number>();
  const faults: string[] = [];
  let foreign = 0;
  let inverted = 0;
  for (const { eventId, key } of delivered) {
    if (first.has(eventId)) continue;
    first.add(eventId);
    const place = places.get(eventId);
    if (place === undefined || place.key !== key) {
      foreign += 1;
      faults.push(`${eventId} of ${key} was not committed`);
      continue;
    }
    const before = latest.get(key) ?? -1;
    if (place.at < before) {
      inverted += 1;
      faults.push(`${eventId} of ${key}, committed as number ${place.at}, came after number ${before}`);
    }
    latest.set(key, Math.max(before, place.at));
  }
  const missing = committed.filter(({ eventId }) => !first.has(eventId));
  faults.push(...missing.map(({ eventId, key }) => `${eventId} of ${key} was lost`));
  return {
    events: committed.length,
    delivered: delivered.length,
    resent: delivered.length - first.size,
    lost: missing.length,
    foreign,
    inverted,
    faults: faults.slice(0, maxFaults),
  };
}

/** Each event's key, and its number among the events of its key. */
function placesOf(
  committed: readonly SeenEvent[],
): Map<string, { readonly key: string; readonly at: number }> {
  const counts = new Map<string, number>();
  return new Map(
    committed.map(({ eventId, key }) => {
      const at = counts.get(key) ?? 0;
      counts.set(key, at + 1);
      return [eventId, { key, at }];
    }),
  );
}
