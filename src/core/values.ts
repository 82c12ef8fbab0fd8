import { isIdemkitError } from "../errors.ts";
import { jsonCodec } from "./codec.ts";
import type { Codec } from "./codec.ts";
import type { Completion, Executed } from "./execution.ts";
import { isRefusal } from "./outcome.ts";
import type { Finished, Outcome } from "./outcome.ts";
import type { Answer, OperationRecord } from "./ports.ts";

/** One run's results that are not in a record: what was discarded with `notFinal`. */
export interface Discarded<V> {
  value?: V;
}

const refusals = jsonCodec<unknown>();

/**
 * Runs a handler below HTTP: a returned value is kept, a refusal is stored, and so is another system's definitive no that
 * the handler lets through; any other throw is thrown on.
 */
export async function handled<T, V>(
  handler: (notFinal: () => void) => Promise<T> | T,
  codec: Codec<T, V>,
  discarded: Discarded<V>,
): Promise<Completion> {
  let final = true;
  const notFinal = (): void => {
    final = false;
  };
  try {
    const value = codec.encode(await handler(notFinal));
    if (final) return { disposition: "keep", answer: answerOf(value) };
    discarded.value = codec.decode(value);
    return { disposition: "discard" };
  } catch (error) {
    if (!final) throw error;
    if (isRefusal(error)) return refusedWith(error.value);
    if (isIdemkitError(error, "effect_refused")) return refusedWith(error.details.refusal);
    throw error;
  }
}

function refusedWith(value: unknown): Completion {
  return { disposition: "refuse", answer: answerOf(refusals.encode(value)) };
}

function answerOf(body: Uint8Array): Answer {
  return { status: null, headers: [], body };
}

/** The outcome of a call below HTTP. */
export function outcomeOf<V>(ended: Executed, codec: Codec<never, V>, discarded: Discarded<V>): Outcome<V> {
  switch (ended.outcome) {
    case "executed":
      if (ended.disposition !== "discard") return finished("executed", ended.record, codec);
      return { ...ended, value: discarded.value as V };
    case "replayed":
      return finished("replayed", ended.record, codec);
    case "in-progress":
    case "mismatch":
    case "uncertain":
      return ended;
  }
}

function finished<O extends "executed" | "replayed", V>(
  outcome: O,
  { disposition, operationId, body }: OperationRecord,
  codec: Codec<never, V>,
): Finished<O, V, unknown> {
  if (disposition === "keep") return { outcome, disposition, operationId, value: codec.decode(body) };
  return { outcome, disposition, operationId, refusal: refusals.decode(body) };
}
