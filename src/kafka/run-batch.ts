import type { EventMessage } from "../core/event.ts";
import { derivedEventId } from "../inbox/event-id.ts";
import type { Inbox } from "../inbox/inbox.ts";
import type { EventOutcome } from "../inbox/outcome.ts";
import type { HeaderStyle } from "./event-headers.ts";
import { eventOf } from "./event-headers.ts";
import type { Entry, PartitionWork } from "./partition-work.ts";
import type { ConsumedRecord, TopicPartition } from "./port.ts";

/** A record as an entry. */
export function entryOf(from: TopicPartition, record: ConsumedRecord, style: HeaderStyle): Entry {
  const read = eventOf(from, record, style);
  const { offset } = record;
  if ("event" in read) {
    return { offset, key: read.event.key, event: read.event, malformed: undefined, done: false };
  }
  // What PostgreSQL can't store would make a poison message of the dead letter itself.
  const key = read.key === "" ? `offset ${offset}` : read.key.replaceAll("\0", "\uFFFD");
  const event: EventMessage = {
    // The place is all that tells this record from others: a re-send of it is another malformed record.
    eventId: derivedEventId("kafka", from.topic, String(from.partition), String(offset)),
    type: "malformed",
    topic: from.topic,
    key,
    payload: record.value ?? new Uint8Array(),
    headers: read.headers,
  };
  return { offset, key, event, malformed: read.malformed, done: false };
}

/** Settings of {@link runBatch}. */
export interface BatchRun {
  readonly inbox: Inbox;
  readonly work: PartitionWork;
  readonly entries: readonly Entry[];
  readonly onOutcome: (outcome: EventOutcome, entry: Entry) => void;
}

/**
 * Brings the entries through the inbox in order, and tells each outcome as soon as it is final.
 * @throws what the inbox throws: nothing is known of the entries without an outcome.
 */
export async function runBatch({ inbox, work, entries, onOutcome }: BatchRun): Promise<void> {
  const { signal } = work;
  for (const run of runsOf(entries)) {
    const [first] = run;
    if (first?.event === undefined) continue;
    if (first.malformed !== undefined) {
      const reason = { reason: "malformed", error: first.malformed };
      onOutcome(await inbox.deadLetter(first.event, reason, { signal }), first);
      continue;
    }
    const told = (outcome: EventOutcome, at: number): void => {
      const entry = run[at];
      if (entry !== undefined) onOutcome(outcome, entry);
    };
    const events = run.flatMap(({ event }) => event ?? []);
    const outcomes = await inbox.processBatch(events, { signal, onOutcome: told });
    outcomes.forEach(told);
  }
}

/** Splits at what is no event: each of those is a run of its own. */
function runsOf(entries: readonly Entry[]): Entry[][] {
  const runs: Entry[][] = [];
  let open: Entry[] | undefined;
  for (const entry of entries) {
    if (entry.malformed === undefined && open !== undefined) open.push(entry);
    else runs.push((open = [entry]));
    if (entry.malformed !== undefined) open = undefined;
  }
  return runs;
}
