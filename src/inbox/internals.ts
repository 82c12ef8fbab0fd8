import type { Runtime } from "../internal/runtime.ts";
import type { Call, PostgresDatabase } from "../postgres/connections.ts";
import { statementOf } from "../postgres/statement.ts";
import type { Statement } from "../postgres/statement.ts";
import type { EventHandlers } from "./handler.ts";
import type { Settings } from "./settings.ts";

/** What the parts of one inbox share. */
export interface Internals<Tx> {
  readonly database: PostgresDatabase<Tx>;
  readonly handlers: EventHandlers<Tx>;
  readonly settings: Settings;
  readonly statements: InboxStatements;
  readonly runtime: Runtime;
}

const names = [
  "inbox-attempt",
  "inbox-attempt-delete",
  "inbox-claim",
  "inbox-dead-letter",
  "inbox-dead-letter-delete",
  "inbox-dead-letter-find",
  "inbox-held-find",
  "inbox-held-next",
  "inbox-horizon",
  "inbox-open",
  "inbox-park-event",
  "inbox-park-key",
  "inbox-parked-count",
  "inbox-parked-delete",
  "inbox-parked-key-delete",
  "inbox-parked-key-lock",
  "inbox-parked-next",
  "inbox-record",
  "inbox-version-lock",
  "inbox-version-save",
  "inbox-version-seed",
] as const;

/** The inbox's statements with their schema filled in. */
export type InboxStatements = Readonly<Record<(typeof names)[number], Statement>>;

/** Fills in the schema once for each inbox. */
export function inboxStatements(schema: string): InboxStatements {
  return Object.fromEntries(names.map((name) => [name, statementOf(name, schema)])) as InboxStatements;
}

/** A statement whose first parameter is the consumer, as most are. */
export function consumerCall<Tx>(
  { statements, settings }: Internals<Tx>,
  name: keyof InboxStatements,
  ...values: readonly unknown[]
): Call {
  return { ...statements[name], values: [settings.consumer, ...values] };
}
