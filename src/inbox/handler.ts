import type { EventMessage } from "../core/event.ts";
import { dataOf } from "./event-data.ts";

/** An event as a handler gets it: the message, and its payload parsed. */
export interface ReceivedEvent extends EventMessage {
  /**
   * The payload as JSON, parsed at the first look. Check it before use: it comes from another service.
   * @throws SyntaxError where the payload is not JSON, which makes the event a poison message.
   */
  readonly data: unknown;
}

/** What a handler is given last. */
export interface EventContext<Tx> {
  /** The caller's own client, inside the transaction that holds the event's record. Closed when the transaction ends. */
  readonly tx: Tx;
  /** Aborts when the delivery is given up: a revoked partition, a stop, or `handlerTimeoutMs`. */
  readonly signal: AbortSignal;
  /** 1 for the first try of a delivery, then one more than the failures counted; the database's own never count. */
  readonly attempt: number;
}

/** Handles the events of one type. It may run more than once; it commits once. */
export type EventHandler<Tx> = (event: ReceivedEvent, context: EventContext<Tx>) => unknown;

/** Handlers by event type; `"*"` handles the types that have none. */
export type EventHandlers<Tx> = Readonly<Record<string, EventHandler<Tx>>>;

/** The message with `data` beside it; on the prototype, since most of a batch's cost is what is made for each event. */
export function receivedEvent(message: EventMessage): ReceivedEvent {
  return Object.assign(Object.create(received) as ReceivedEvent, message);
}

const parsed = Symbol("idemkit.data");

interface Parsing {
  readonly payload: Uint8Array;
  [parsed]?: { readonly data: unknown };
}

const received = {
  get data(): unknown {
    const event = this as unknown as Parsing;
    event[parsed] ??= { data: dataOf(event.payload) };
    return event[parsed].data;
  },
};
