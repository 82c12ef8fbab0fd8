import { eventHeaders } from "../core/event.ts";
import type { OutgoingEvent } from "../core/event.ts";
import { isIdemkitError } from "../errors.ts";
import { enqueue } from "../outbox/enqueue.ts";
import { isTraceparent } from "../outbox/trace-context.ts";
import type { Call, Session } from "../postgres/connections.ts";
import { errorText } from "./failure.ts";
import { consumerCall } from "./internals.ts";
import type { Internals } from "./internals.ts";
import { columnsOf } from "./stored-event.ts";
import type { Incoming } from "./stored-event.ts";

/** What the headers of a message on a dead-letter topic tell beside those of the event. */
export const deadLetterHeaders = {
  consumer: "dead_letter_consumer",
  eventId: "dead_letter_event_id",
  reason: "dead_letter_reason",
} as const;

/** Why an event becomes a dead letter. */
export interface Burial {
  readonly reason: string;
  readonly error?: unknown;
  readonly attempts: number;
}

/** The statements that store a dead letter; where the consumer wants it, a copy goes to the event's dead-letter topic. */
export async function deadLetterCalls<Tx>(
  inbox: Internals<Tx>,
  session: Session<Tx>,
  event: Incoming,
  burial: Burial,
): Promise<readonly Call[]> {
  if (inbox.settings.deadLetterTopic) await sendCopy(inbox, session.tx as object, event, burial);
  const error = burial.error === undefined ? null : errorText(burial.error);
  const { reason, attempts } = burial;
  return [consumerCall(inbox, "inbox-dead-letter", ...columnsOf(event), reason, error, attempts)];
}

/** What can't be a message of a topic (a header without a name, an event too large) is in the table all the same. */
async function sendCopy<Tx>(
  inbox: Internals<Tx>,
  tx: object,
  event: Incoming,
  { reason }: Burial,
): Promise<void> {
  const { topic, traceparent, ...copy } = copyOf(inbox, event, reason);
  try {
    await enqueue(
      tx,
      { ...copy, topic: `${topic}.dead-letter` },
      isTraceparent(traceparent) ? { traceparent } : {},
    );
  } catch (error) {
    const unsendable =
      isIdemkitError(error, "outbox_event_invalid") || isIdemkitError(error, "outbox_event_too_large");
    if (!unsendable) throw error;
    inbox.settings.onWarning(
      `idemkit: event ${event.id} can't be sent to ${topic}.dead-letter: ${error.message}`,
    );
  }
}

function copyOf<Tx>(
  { settings }: Internals<Tx>,
  { id, message }: Incoming,
  reason: string,
): OutgoingEvent & { readonly topic: string; readonly traceparent: string | undefined } {
  const { type, topic, key, payload, aggregateVersion, sagaId, stepName } = message;
  const { [eventHeaders.traceparent]: traceparent, ...headers } = message.headers;
  return {
    type,
    topic,
    key: key === "" ? id : key,
    payload,
    ...(aggregateVersion === undefined ? {} : { aggregateVersion }),
    ...(sagaId === undefined ? {} : { sagaId }),
    ...(stepName === undefined ? {} : { stepName }),
    headers: {
      ...headers,
      [deadLetterHeaders.consumer]: settings.consumer,
      [deadLetterHeaders.eventId]: message.eventId,
      [deadLetterHeaders.reason]: reason,
    },
    traceparent,
  };
}
