import type { EventMessage, Published } from "../core/event.ts";
import { IdemkitError } from "../errors.ts";
import { headersOf } from "./event-headers.ts";
import type { HeaderStyle } from "./event-headers.ts";
import { murmur2Partition } from "./murmur2.ts";
import type { Pipeline } from "./pipeline.ts";
import type { PartitionRecords, ProducedRecord } from "./port.ts";
import { refusalOf } from "./refusals.ts";

/** A message on its way, with the place its result goes to. */
export interface Sending {
  readonly message: EventMessage;
  readonly settle: (result: Published) => void;
}

/** Settings of {@link sendInOrder}. */
export interface SendSettings {
  readonly pipeline: Pipeline;
  readonly protocolErrorOf: (error: unknown) => string | undefined;
  readonly headers: HeaderStyle;
  /** Bytes of one partition's batch: the broker's limit (`message.max.bytes`) holds for the batch, not for the record. */
  readonly maxBatchBytes: number;
}

/** The messages of one partition that go in one batch. */
interface Batch extends PartitionRecords {
  readonly sendings: readonly Sending[];
}

/**
 * Sends messages whose topics' partition counts are known, one request for all partitions at a time, and settles each.
 * Within a key no message is sent behind one that was refused or failed.
 */
export async function sendInOrder(
  sendings: readonly Sending[],
  counts: ReadonlyMap<string, number>,
  settings: SendSettings,
): Promise<void> {
  const held = new Set<string>();
  const rounds = roundsOf(sendings, counts, settings);
  for (const [at, batches] of rounds.entries()) {
    const failure = await sendRound(withoutHeld(batches, held), held, settings);
    if (failure === undefined) continue;
    for (const { sendings: rest } of rounds.slice(at + 1).flat()) failAll(rest, failure.error);
    return;
  }
}

/** One request; where the broker refuses something in it, the parts are sent one by one to find out what. */
async function sendRound(
  batches: readonly Batch[],
  held: Set<string>,
  settings: SendSettings,
): Promise<{ readonly error: unknown } | undefined> {
  if (batches.length === 0) return undefined;
  const sendings = batches.flatMap((batch) => batch.sendings);
  try {
    await settings.pipeline.send(batches);
    for (const { settle } of sendings) settle({ published: "acknowledged" });
    return undefined;
  } catch (error) {
    const refusal = refusalOf(settings.protocolErrorOf(error));
    if (refusal === undefined) {
      failAll(sendings, error);
      return { error };
    }
    if (sendings.length === 1 || (batches.length === 1 && refusal === "topic")) {
      refuseAll(sendings, error, held);
      return undefined;
    }
    return sendParts(batches, held, settings);
  }
}

/** The partitions one by one; within one, its first half before its second, so that the order stays. */
async function sendParts(
  batches: readonly Batch[],
  held: Set<string>,
  settings: SendSettings,
): Promise<{ readonly error: unknown } | undefined> {
  const [first] = batches;
  const parts = batches.length > 1 || first === undefined ? batches : halves(first);
  for (const [at, each] of parts.entries()) {
    const failure = await sendRound(withoutHeld([each], held), held, settings);
    if (failure === undefined) continue;
    for (const { sendings } of parts.slice(at + 1)) failAll(sendings, failure.error);
    return failure;
  }
  return undefined;
}

function halves(batch: Batch): Batch[] {
  const middle = Math.ceil(batch.records.length / 2);
  return [part(batch, 0, middle), part(batch, middle, batch.records.length)];
}

function part(batch: Batch, from: number, to: number): Batch {
  return { ...batch, records: batch.records.slice(from, to), sendings: batch.sendings.slice(from, to) };
}

/** Takes out what must not overtake a refused message of its key. */
function withoutHeld(batches: readonly Batch[], held: ReadonlySet<string>): Batch[] {
  if (held.size === 0) return [...batches];
  return batches.flatMap((batch) => {
    const kept = batch.sendings.flatMap((sending, at) => (held.has(keyOf(sending.message)) ? [] : [at]));
    for (const sending of batch.sendings) if (held.has(keyOf(sending.message))) sending.settle(heldBack());
    const records = kept.flatMap((at) => batch.records[at] ?? []);
    const sendings = kept.flatMap((at) => batch.sendings[at] ?? []);
    return records.length === 0 ? [] : [{ ...batch, records, sendings }];
  });
}

/** Identifies a key across topics. */
export function keyOf({ topic, key }: EventMessage): string {
  return `${topic}\0${key}`;
}

function heldBack(): Published {
  return { published: "failed", error: new IdemkitError("kafka_key_held") };
}

/** Failed: the same messages may be sent again. */
export function failAll(sendings: readonly Sending[], error: unknown): void {
  for (const { settle } of sendings) settle({ published: "failed", error });
}

/** The first message of each key is refused, its followers are held back. */
export function refuseAll(sendings: readonly Sending[], error: unknown, held: Set<string>): void {
  for (const sending of sendings) {
    const key = keyOf(sending.message);
    sending.settle(held.has(key) ? heldBack() : { published: "refused", error });
    held.add(key);
  }
}

/** Requests one behind the other: in each at most one batch of every partition. */
function roundsOf(
  sendings: readonly Sending[],
  counts: ReadonlyMap<string, number>,
  { headers, maxBatchBytes }: SendSettings,
): Batch[][] {
  const rounds: Batch[][] = [];
  const open = new Map<
    string,
    { round: number; bytes: number; records: ProducedRecord[]; sendings: Sending[] }
  >();
  for (const sending of sendings) {
    const { topic, key } = sending.message;
    const partition = murmur2Partition(key, counts.get(topic) ?? 1);
    const record = { key, value: sending.message.payload, headers: headersOf(sending.message, headers) };
    const bytes = sizeOf(record);
    const name = `${topic}\0${partition}`;
    let batch = open.get(name);
    if (batch === undefined || batch.bytes + bytes > maxBatchBytes) {
      batch = { round: batch === undefined ? 0 : batch.round + 1, bytes: 0, records: [], sendings: [] };
      open.set(name, batch);
      (rounds[batch.round] ??= []).push({
        topic,
        partition,
        records: batch.records,
        sendings: batch.sendings,
      });
    }
    batch.bytes += bytes;
    batch.records.push(record);
    batch.sendings.push(sending);
  }
  return rounds;
}

/** About what the record takes on the wire. */
function sizeOf({ key, value, headers }: ProducedRecord): number {
  let bytes = 32 + key.length * 2 + value.length;
  for (const [name, text] of Object.entries(headers)) bytes += name.length + text.length + 4;
  return bytes;
}
