import type { EventMessage } from "../core/event.ts";
import { checkFunction, checkNames, checkObject } from "../internal/options.ts";
import { systemRuntime } from "../internal/runtime.ts";
import { checkPostgresDatabase } from "../postgres/database.ts";
import { checkMessage } from "./check-message.ts";
import { deadLetterCalls } from "./dead-letter-calls.ts";
import { putAway } from "./deliver.ts";
import { derivedEventId, isUuid, recordedEventId } from "./event-id.ts";
import type { EventHandlers } from "./handler.ts";
import { inboxStatements } from "./internals.ts";
import type { Internals } from "./internals.ts";
import type { DeadLetterReason, Inbox } from "./inbox.ts";
import type { EventOutcome } from "./outcome.ts";
import { persistently } from "./persist.ts";
import { processBatch } from "./process-batch.ts";
import { processOne } from "./process-one.ts";
import { releaseParkedKey, replayDeadLetter } from "./replay.ts";
import { inboxSettingNames, settingsOf } from "./settings.ts";
import type { InboxOptions } from "./settings.ts";
import { incoming } from "./stored-event.ts";
import type { Incoming } from "./stored-event.ts";

/**
 * An inbox for one consumer: each event takes effect once, because the record that it did commits in the same
 * transaction as what its handler changed (R-DIST-IDEM-2).
 * @param handlers - by event type; each gets the event, and last the transaction
 * @throws IdemkitError `option_invalid`.
 */
export function createInbox<Tx>(options: InboxOptions<Tx>, handlers: EventHandlers<Tx>): Inbox {
  checkNames("createInbox", options, ["database", ...inboxSettingNames]);
  checkPostgresDatabase(options.database);
  checkObject("handlers", handlers);
  for (const [type, handler] of Object.entries(handlers)) checkFunction(`handlers.${type}`, handler);
  const inbox: Internals<Tx> = {
    database: options.database,
    handlers: { ...handlers },
    settings: settingsOf(options),
    statements: inboxStatements(options.database.schema),
    runtime: systemRuntime,
  };
  return {
    consumer: inbox.settings.consumer,
    types: Object.keys(handlers),
    process: async (event, { signal } = {}) => processOne(inbox, incoming(checkMessage(event)), { signal }),
    processBatch: async (events, { signal, onOutcome = (): void => {} } = {}) => {
      if (events.length === 0) return [];
      const checked = events.map((event) => incoming(checkMessage(event)));
      return processBatch(inbox, checked, { signal, onOutcome });
    },
    deadLetter: async (event, reason, { signal } = {}) => buried(inbox, event, reason, signal),
    replayDeadLetter: async (eventId, { signal } = {}) =>
      replayDeadLetter(inbox, recordedEventId(eventId), { signal }),
    releaseParkedKey: async (name, release = {}) => {
      checkNames("releaseParkedKey", release, ["signal", "acceptGaps"]);
      return releaseParkedKey(inbox, name, release);
    },
  };
}

async function buried<Tx>(
  inbox: Internals<Tx>,
  message: EventMessage,
  { reason, error }: DeadLetterReason,
  signal: AbortSignal | undefined,
): Promise<EventOutcome> {
  const event = withAnyId(storableMessage(message));
  const step = (): Promise<boolean> =>
    putAway(inbox, event, ({ session }) =>
      deadLetterCalls(inbox, session, event, { reason, error, attempts: 0 }),
    );
  return (await persistently(inbox, step, { signal })) ? "dead-lettered" : "duplicate";
}

/** What came without its members, or with others than it should have, is put away under what there is of it. */
function storableMessage(message: Partial<EventMessage>): EventMessage {
  const { payload, headers, aggregateVersion, ...rest } = message;
  return {
    ...rest,
    eventId: text(message.eventId),
    type: text(message.type),
    topic: text(message.topic),
    key: text(message.key),
    payload: payload instanceof Uint8Array ? payload : new Uint8Array(0),
    headers: typeof headers === "object" && headers !== null ? headers : {},
    ...(Number.isSafeInteger(aggregateVersion) ? { aggregateVersion: Number(aggregateVersion) } : {}),
  };
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function withAnyId(message: EventMessage): Incoming {
  const { eventId, topic } = message;
  return isUuid(eventId) ? incoming(message) : { message, id: derivedEventId("malformed", topic, eventId) };
}
