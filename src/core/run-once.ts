import { checkFunction, checkNames, invalid } from "../internal/options.ts";
import { systemRuntime } from "../internal/runtime.ts";
import { jsonCodec } from "./codec.ts";
import type { Codec, Stored } from "./codec.ts";
import { execute } from "./execute.ts";
import type { Completion, RunContext } from "./execution.ts";
import { commandOf, fingerprintOf } from "./fingerprint.ts";
import { checkIdentity } from "./identity.ts";
import { sharingSignal } from "./lazy-signal.ts";
import { checkDatabase, operationOptionNames, settingsOf } from "./operation.ts";
import type { OperationOptions } from "./operation.ts";
import type { Outcome } from "./outcome.ts";
import type { Database } from "./ports.ts";
import { handled, outcomeOf } from "./values.ts";
import type { Discarded } from "./values.ts";

/** What a handler is given last: its transaction, and what identifies the operation. */
export interface Once<Tx> {
  /** The caller's own client, inside the operation's transaction. It is closed when the handler has returned. */
  readonly tx: Tx;
  /** The caller's key. */
  readonly key: string;
  /** This operation instance; the same in every run of it. */
  readonly operationId: string;
  /** Aborts when the operation is given up, for calls that can be cancelled. */
  readonly signal: AbortSignal;
  /** Marks the answer as not final: the writes are rolled back and nothing is stored, so that the key may be tried again. */
  notFinal(): void;
}

/** One call of an operation below HTTP. */
export interface Command extends OperationOptions {
  /** Whose key it is: the principal. `"shared"` must be meant. */
  readonly scope: string;
  /** The caller's key: one for each business operation, the same in every retry. */
  readonly key: string;
  /** What is asked for, as JSON or bytes. The same key with another command is a mismatch, never executed. */
  readonly command: unknown;
}

/** Settings of a call whose value is not JSON. */
export interface CodecOption<T, S> {
  /** @defaultValue JSON */
  readonly codec: Codec<T, S>;
}

/**
 * Makes an operation take effect once: the handler's writes and its value commit in one transaction, and a repeat with
 * the same key gets the stored value without running the handler.
 *
 * A returned value is kept; `throw refuse(value)` rolls the writes back and stores the value; any other throw is
 * discarded and reaches the caller. The handler may run more than once (a serialization failure); it commits once.
 * @throws IdemkitError `scope_missing`, `idempotency_key_missing`, `idempotency_key_malformed`, `option_invalid`,
 * `retention_out_of_range`, `command_*`, `value_not_json`, `handler_timed_out`, `idempotency_unavailable`.
 */
export function runOnce<Tx, T>(
  database: Database<Tx>,
  command: Command,
  handler: (once: Once<Tx>) => Promise<T> | T,
): Promise<Outcome<Stored<T>>>;
export function runOnce<Tx, T, S>(
  database: Database<Tx>,
  command: Command & CodecOption<T, S>,
  handler: (once: Once<Tx>) => Promise<T> | T,
): Promise<Outcome<S>>;
export async function runOnce<Tx, T, S>(
  database: Database<Tx>,
  command: Command & Partial<CodecOption<T, S>>,
  handler: (once: Once<Tx>) => Promise<T> | T,
): Promise<Outcome<S | Stored<T>>> {
  const settings = checked(command);
  checkDatabase(database);
  checkFunction("handler", handler);
  const { scope, operation, key } = command;
  const codec: Codec<T, S | Stored<T>> = command.codec ?? (json as Codec<T, Stored<T>>);
  const identity = { scope, operation, key };
  checkIdentity(identity);
  const fingerprint = fingerprintOf(commandOf(command.command));
  const discarded: Discarded<S | Stored<T>> = {};
  const run = (context: RunContext<Tx>): Promise<Completion> =>
    handled((notFinal) => handler(onceOf(context, notFinal)), codec, discarded);
  const ended = await execute({ database, identity, fingerprint, settings, runtime: systemRuntime, run });
  return outcomeOf(ended, codec, discarded);
}

const json = jsonCodec<unknown>();
const optionNames: readonly string[] = [...operationOptionNames, "scope", "key", "command", "codec"];

function checked(command: Command): ReturnType<typeof settingsOf> {
  checkNames("runOnce", command, optionNames);
  if (command.command === undefined) {
    throw invalid("command", "must be given: without it a changed retry could not be told from a true one");
  }
  return settingsOf(command);
}

/** The signal is made when it is first read: sharing it does not make it. */
function onceOf<Tx>(context: RunContext<Tx>, notFinal: () => void): Once<Tx> {
  const { tx, key, operationId } = context;
  return sharingSignal({ tx, key, operationId, notFinal }, context);
}
