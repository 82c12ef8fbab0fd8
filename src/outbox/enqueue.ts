import type { OutgoingEvent } from "../core/event.ts";
import { IdemkitError } from "../errors.ts";
import { checkInteger, checkNames, invalid } from "../internal/options.ts";
import { systemRuntime } from "../internal/runtime.ts";
import { transactionOf } from "../postgres/transaction.ts";
import type { CommitHook, Transaction } from "../postgres/transaction.ts";
import { enqueueWithClient } from "./enqueue-with-client.ts";
import type { PlainClient, PlainClientOptions } from "./enqueue-with-client.ts";
import { checkEvent } from "./outgoing.ts";
import type { CheckedEvent } from "./outgoing.ts";
import { pendingEvents } from "./pending.ts";
import { checkPayload } from "./standard-schema.ts";
import type { StandardSchema } from "./standard-schema.ts";
import { wakerOf } from "./wake.ts";

/** Settings of {@link enqueue} and {@link enqueueAll}. */
export interface EnqueueOptions {
  /** What the payload must look like; it is checked and sent as it was given. */
  readonly schema?: StandardSchema;
  /**
   * Largest event: its payload, key and headers together.
   * @defaultValue 1_000_000: what a Kafka broker accepts by default (`message.max.bytes`), less some room
   */
  readonly maxBytes?: number;
  /** @defaultValue the active span's, where the API of OpenTelemetry is loaded */
  readonly traceparent?: string;
}

const optionNames = ["schema", "maxBytes", "traceparent"] as const;
const defaultMaxBytes = 1_000_000;
const buffered = Symbol("idemkit.outbox");

/**
 * Sends an event with the handler's transaction: it exists when the transaction commits, and never otherwise. The event
 * is checked here and now; it is inserted with all others of the transaction just before the commit, which keeps the
 * order within its key whatever other transactions do.
 * @param tx - what a handler of `runOnce`, a binding or the inbox was given
 * @returns the event's id, a UUIDv7: the same in every re-send
 * @throws IdemkitError `outbox_event_invalid`, `outbox_event_too_large`, `outbox_payload_refused`,
 * `outbox_too_many_keys`, `outbox_transaction_unknown`, `transaction_closed`, `option_invalid`. Source: R-DIST-IDEM-1.
 */
export async function enqueue(
  tx: object,
  event: OutgoingEvent,
  options: EnqueueOptions = {},
): Promise<string> {
  const transaction = transactionOf(tx);
  if (transaction === undefined) throw new IdemkitError("outbox_transaction_unknown");
  const checked = prepared([event], options);
  const [added] = checked instanceof Promise ? add(transaction, await checked) : add(transaction, checked);
  return added ?? "";
}

/**
 * Sends several events at once: with a handler's `tx` as {@link enqueue} does, and with a client of your own at once.
 * There it must be the last thing in the transaction, because it takes the locks of the events' keys: more work behind
 * it would hold them, and a second call could deadlock with another transaction's.
 * @returns the events' ids, in order
 * @throws IdemkitError as {@link enqueue} does.
 */
export async function enqueueAll(
  tx: PlainClient,
  events: readonly OutgoingEvent[],
  options: EnqueueOptions & PlainClientOptions = {},
): Promise<readonly string[]> {
  const { database, notify, ...rest } = options;
  const transaction = transactionOf(tx);
  const checked = await prepared(events, rest);
  if (transaction !== undefined) return add(transaction, checked);
  await enqueueWithClient(tx, checked, { database, notify });
  return checked.map(({ eventId }) => eventId);
}

/** Without waiting where the schema doesn't: an `enqueue` that nobody awaited is in the buffer before the handler ends. */
function prepared(
  events: readonly OutgoingEvent[],
  options: EnqueueOptions,
): readonly CheckedEvent[] | Promise<readonly CheckedEvent[]> {
  checkNames("enqueue", options, optionNames);
  const given: unknown = events;
  if (!Array.isArray(given)) throw invalid("events", "must be an array");
  const maxBytes = checkInteger("maxBytes", options.maxBytes ?? defaultMaxBytes, 1, 100_000_000);
  const { schema, traceparent } = options;
  const checked = events.map((event) =>
    checkEvent(event, { eventId: systemRuntime.newId(), maxBytes, traceparent }),
  );
  if (schema === undefined) return checked;
  const waits = events
    .map(({ type, payload }) => checkPayload(schema, type, payload))
    .filter((each) => each !== undefined);
  return waits.length === 0 ? checked : Promise.all(waits).then(() => checked);
}

function add(transaction: Transaction, events: readonly CheckedEvent[]): readonly string[] {
  if (transaction.ended) throw new IdemkitError("transaction_closed");
  const found = transaction.hooks?.get(buffered) as OutboxBuffer | undefined;
  const buffer = found ?? newBuffer(transaction);
  buffer.add(events);
  transaction.hooks ??= new Map();
  transaction.hooks.set(buffered, buffer);
  return events.map(({ eventId }) => eventId);
}

interface OutboxBuffer extends CommitHook {
  add(events: readonly CheckedEvent[]): void;
}

/** The events of one transaction, until its commit. */
function newBuffer({ schema, connections, notify }: Transaction): OutboxBuffer {
  const pending = pendingEvents(schema);
  return {
    add: pending.add,
    calls: () => (pending.size === 0 ? [] : [pending.insert()]),
    committed: () => {
      if (notify) wakerOf(connections, schema)(pending.shards());
    },
    mark: () => {
      const { size } = pending;
      return () => pending.truncate(size);
    },
  };
}
