import { checkNames, invalid } from "../internal/options.ts";
import { systemRuntime } from "../internal/runtime.ts";
import { jsonCodec } from "./codec.ts";
import type { Codec, Stored } from "./codec.ts";
import { execute } from "./execute.ts";
import type { Completion, Executed, RunContext } from "./execution.ts";
import { commandOf, fingerprintOf } from "./fingerprint.ts";
import { checkIdentity } from "./identity.ts";
import { sharingSignal } from "./lazy-signal.ts";
import { operationOptionNames, settingsOf } from "./operation.ts";
import type { OperationOptions } from "./operation.ts";
import { isRefusal } from "./outcome.ts";
import type { Finished, Outcome } from "./outcome.ts";
import type { Answer, Database, OperationRecord } from "./ports.ts";

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
  const { scope, operation, key } = command;
  const codec: Codec<T, S | Stored<T>> = command.codec ?? (json as Codec<T, Stored<T>>);
  const settings = checked(command);
  const identity = { scope, operation, key };
  checkIdentity(identity);
  const fingerprint = fingerprintOf(commandOf(command.command));
  const discarded: Discarded<S | Stored<T>> = {};
  const run = (context: RunContext<Tx>): Promise<Completion> =>
    runHandler(handler, codec, context, discarded);
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

/** One run's results that are not in a record: what was discarded with `notFinal`. */
interface Discarded<V> {
  value?: V;
}

async function runHandler<Tx, T, V>(
  handler: (once: Once<Tx>) => Promise<T> | T,
  codec: Codec<T, V>,
  context: RunContext<Tx>,
  discarded: Discarded<V>,
): Promise<Completion> {
  let final = true;
  const notFinal = (): void => {
    final = false;
  };
  const { tx, key, operationId } = context;
  const once: Once<Tx> = sharingSignal({ tx, key, operationId, notFinal }, context);
  try {
    const value = codec.encode(await handler(once));
    if (final) return { disposition: "keep", answer: answerOf(value) };
    discarded.value = codec.decode(value);
    return { disposition: "discard" };
  } catch (error) {
    if (!isRefusal(error) || !final) throw error;
    return { disposition: "refuse", answer: answerOf(json.encode(error.value)) };
  }
}

function answerOf(body: Uint8Array): Answer {
  return { status: null, headers: [], body };
}

function outcomeOf<V>(ended: Executed, codec: Codec<never, V>, discarded: Discarded<V>): Outcome<V> {
  switch (ended.outcome) {
    case "executed":
      if (ended.disposition !== "discard") return finished("executed", ended.record, codec);
      return { ...ended, value: discarded.value as V };
    case "replayed":
      return finished("replayed", ended.record, codec);
    case "in-progress":
    case "mismatch":
      return ended;
  }
}

function finished<O extends "executed" | "replayed", V>(
  outcome: O,
  { disposition, operationId, body }: OperationRecord,
  codec: Codec<never, V>,
): Finished<O, V, unknown> {
  if (disposition === "keep") return { outcome, disposition, operationId, value: codec.decode(body) };
  return { outcome, disposition, operationId, refusal: json.decode(body) };
}
