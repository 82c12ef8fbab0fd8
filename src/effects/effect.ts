import { createHash } from "node:crypto";

import { jsonCodec } from "../core/codec.ts";
import type { Stored } from "../core/codec.ts";
import { isRefusal } from "../core/outcome.ts";
import { IdemkitError } from "../errors.ts";
import { backoffMs } from "../internal/backoff.ts";
import { withDeadline } from "../internal/deadline.ts";
import { checkInteger, checkNames, invalid } from "../internal/options.ts";
import type { Runtime } from "../internal/runtime.ts";

/** What a call to another system is given. */
export interface EffectCall {
  /** The key to send: derived from the operation and the effect's name, the same in every try (R-DIST-IDEM-X3). */
  readonly key: string;
  /** Aborts at the call's deadline, and when the attempt has lost the operation. */
  readonly signal: AbortSignal;
}

/** What a recovery found out about a call whose result is not known. */
export type Recovered<T> =
  | { readonly recovered: "done"; readonly result: T }
  /** It never took effect and never will. Say so only where the other system's answer is conclusive. */
  | { readonly recovered: "absent" }
  | { readonly recovered: "unknown" };

/** It took effect: here is its result. */
export function done<T>(result: T): Recovered<T> {
  return { recovered: "done", result };
}

/** It did not take effect, and the other system's answer is conclusive. */
export const absent: Recovered<never> = { recovered: "absent" };

/** It cannot be found out now. */
export const unknown: Recovered<never> = { recovered: "unknown" };

/** One call to another system. */
export interface EffectOptions<T> {
  /**
   * Makes the call. Its value is the effect's result; `throw refuse(value)` is a definitive no of the other system, and any
   * other throw leaves the outcome open.
   */
  run(call: EffectCall): Promise<T>;
  /** Finds out what became of a call whose result is not known. Without it the other system's keys must do. */
  recover?(call: EffectCall): Promise<Recovered<T>>;
  /**
   * Whether the other system answers a repeated key with the first call's result, so that repeating an open call is safe.
   * @defaultValue false
   */
  readonly honoursKeys?: boolean;
  /**
   * Bounds one call.
   * @defaultValue 10_000
   */
  readonly deadlineMs?: number;
  /**
   * How long after its deadline a call that is on the wire may still arrive: only then is "absent" believed.
   * @defaultValue 5_000
   */
  readonly graceMs?: number;
}

/** Performs an effect once, or returns what it came to before. */
export type Effect = <T>(name: string, options: EffectOptions<T>) => Promise<Stored<T>>;

/** Where an attempt writes what it intends and what came of it; both only while it owns its operation or saga. */
export interface Ledger {
  /** @throws IdemkitError `attempt_lost` */
  intend(name: string, derivedKey: string): Promise<void>;
  /** @throws IdemkitError `attempt_lost` */
  end(name: string, state: "done" | "refused" | "absent", result: Uint8Array): Promise<void>;
}

/** A row of the ledger of calls. */
export interface EffectRow {
  readonly name: string;
  readonly derivedKey: string;
  readonly state: "intent" | "done" | "refused" | "absent";
  readonly result: Uint8Array | null;
  /** How long ago the call was intended, by the database's clock. */
  readonly ageMs: number;
}

/** What {@link effects} needs of its attempt. */
export interface EffectsSettings {
  /** The operation or saga that keys are derived from. */
  readonly operationId: string;
  readonly ledger: Ledger;
  /** The ledger as the take-over found it; empty for a first attempt. */
  readonly rows: readonly EffectRow[];
  readonly signal: AbortSignal;
  readonly runtime: Runtime;
  /** Told that an outcome cannot be known; the operation becomes uncertain whatever the handler does with the error. */
  onUncertain(): void;
  /** Whether the final transaction is open. */
  inTransaction(): boolean;
}

/** An open call is repeated or looked up this often before its operation is given back or declared uncertain. */
const maxTries = 3;
const backoff = { baseMs: 100, maxMs: 2000 };
const results = jsonCodec<unknown>();

/** The `effect` of one attempt. */
export function effects(settings: EffectsSettings): Effect {
  const rows = new Map(settings.rows.map((row) => [row.name, row]));
  const names = new Set<string>();
  return async <T>(name: string, options: EffectOptions<T>) => {
    checkOptions(name, options);
    settings.signal.throwIfAborted();
    if (names.has(name)) throw new IdemkitError("effect_name_reused", { details: { at: name } });
    if (settings.inTransaction()) throw new IdemkitError("effect_in_transaction", { details: { at: name } });
    names.add(name);
    const row = rows.get(name);
    if (row?.state === "done") return stored<T>(row.result);
    if (row?.state === "refused") throw refusedBy(name, results.decode(row.result ?? new Uint8Array(0)));
    const key = row?.derivedKey ?? derivedKey(settings.operationId, name);
    return perform<T>({ ...settings, name, key, options, row });
  };
}

/**
 * Finds out what became of a call that an earlier attempt left open: before something is compensated it must be known
 * whether it happened. Only where nobody can tell and keys are honoured it is sent again, under an intent of its own.
 * @throws IdemkitError `operation_uncertain`; what the call threw, where it may be asked again
 */
export async function settleEffect<T>(
  settings: EffectsSettings,
  row: EffectRow,
  options: EffectOptions<T>,
): Promise<"done" | "refused" | "absent"> {
  const performing: Performing<T> = { ...settings, name: row.name, key: row.derivedKey, options, row };
  // A call that arrives later would not be undone: honoured keys or not, "absent" has to be the last word.
  const found = await lookUp(performing, row.ageMs, { final: true });
  if (found.recovered === "absent") {
    await settings.ledger.end(row.name, "absent", results.encode(null));
    return "absent";
  }
  if (found.recovered === "done") {
    await end(performing, found.result);
    return "done";
  }
  if (options.honoursKeys !== true) throw uncertain(performing);
  const tried = await tryCall(performing, await intended(performing));
  if ("result" in tried) await end(performing, tried.result);
  else if (isRefusal(tried.error)) {
    await settings.ledger.end(row.name, "refused", results.encode(tried.error.value));
  } else throw tried.error;
  return "result" in tried ? "done" : "refused";
}

/** A key that is the same in every attempt and tells nothing of the operation. */
export function derivedKey(operationId: string, name: string): string {
  return createHash("sha256").update(`idemkit.effect\0${operationId}\0${name}`).digest("hex").slice(0, 40);
}

interface Performing<T> extends EffectsSettings {
  readonly name: string;
  readonly key: string;
  readonly options: EffectOptions<T>;
  readonly row: EffectRow | undefined;
}

async function perform<T>(performing: Performing<T>): Promise<Stored<T>> {
  const { options, row } = performing;
  if (row?.state === "intent") {
    const found = await lookUp(performing, row.ageMs);
    if (found.recovered === "done") return end<T>(performing, found.result);
    if (found.recovered === "unknown" && options.honoursKeys !== true) throw uncertain(performing);
  }
  return call(performing);
}

/**
 * Writes the intent and returns until when the call may run. A process that was paused meanwhile writes it again, which
 * fails where another has taken over and may have been told that the call is absent: it must not arrive after that.
 */
async function intended<T>({ ledger, name, key, options, runtime }: Performing<T>): Promise<number> {
  for (;;) {
    const untilMs = runtime.monotonicMs() + deadlineOf(options);
    await ledger.intend(name, key);
    if (runtime.monotonicMs() < untilMs) return untilMs;
  }
}

/** Calls, and where the call leaves its outcome open finds out, or calls again where the key makes that safe. */
async function call<T>(performing: Performing<T>): Promise<Stored<T>> {
  const { options, runtime, signal } = performing;
  for (let tries = 1; ; tries += 1) {
    // A conclusive "absent" starts a new call with a new deadline; so does a repeat under the same key.
    const untilMs = await intended(performing);
    const intendedMs = untilMs - deadlineOf(options);
    const tried = await tryCall(performing, untilMs);
    if ("result" in tried) return end<T>(performing, tried.result);
    if (isRefusal(tried.error)) return refused(performing, tried.error.value);
    const found = await lookUp(performing, runtime.monotonicMs() - intendedMs);
    if (found.recovered === "done") return end<T>(performing, found.result);
    const safe = found.recovered === "absent" || options.honoursKeys === true;
    if (!safe) throw uncertain(performing, tried.error);
    if (tries === maxTries) throw tried.error;
    await runtime.sleep(backoffMs(tries, backoff, runtime.random), signal);
    signal.throwIfAborted();
  }
}

type Tried<T> = { readonly result: T } | { readonly error: unknown };

async function tryCall<T>(performing: Performing<T>, untilMs: number): Promise<Tried<T>> {
  const leftMs = untilMs - performing.runtime.monotonicMs();
  try {
    return { result: await bounded(performing, leftMs, (given) => performing.options.run(given)) };
  } catch (error) {
    performing.signal.throwIfAborted();
    return { error };
  }
}

/**
 * "Absent" counts only when the call can no longer arrive: after its deadline and the grace. Where the call is made again
 * under a key that is honoured, one that arrives late does no harm, and nothing is waited for.
 */
async function lookUp<T>(
  performing: Performing<T>,
  ageMs: number,
  { final = false }: { readonly final?: boolean } = {},
): Promise<Recovered<T>> {
  const { options, runtime, signal } = performing;
  if (options.recover === undefined) return unknown;
  const quietMs = deadlineOf(options) + (options.graceMs ?? 5000) - ageMs;
  const asked = await ask(performing);
  const repeatable = options.honoursKeys === true && !final;
  if (asked.recovered !== "absent" || quietMs <= 0 || repeatable) return asked;
  await runtime.sleep(quietMs, signal);
  signal.throwIfAborted();
  return ask(performing);
}

async function ask<T>(performing: Performing<T>): Promise<Recovered<T>> {
  const { options, runtime, signal } = performing;
  for (let tries = 1; ; tries += 1) {
    try {
      return await bounded(
        performing,
        deadlineOf(options),
        (given) => options.recover?.(given) ?? Promise.resolve(unknown),
      );
    } catch {
      signal.throwIfAborted();
      if (tries === maxTries) return unknown;
      await runtime.sleep(backoffMs(tries, backoff, runtime.random), signal);
    }
  }
}

function bounded<T, V>(
  { key, signal }: Performing<T>,
  deadlineMs: number,
  work: (call: EffectCall) => Promise<V>,
): Promise<V> {
  return withDeadline(signal, deadlineMs, (bound) => work({ key, signal: bound }));
}

async function end<T>({ ledger, name }: Performing<T>, result: T): Promise<Stored<T>> {
  const bytes = results.encode(result);
  await ledger.end(name, "done", bytes);
  return stored<T>(bytes);
}

async function refused<T>({ ledger, name }: Performing<T>, value: unknown): Promise<never> {
  await ledger.end(name, "refused", results.encode(value));
  throw refusedBy(name, value);
}

function refusedBy(name: string, refusal: unknown): IdemkitError {
  return new IdemkitError("effect_refused", { detail: name, details: { at: name, refusal } });
}

function uncertain<T>({ operationId, onUncertain }: Performing<T>, cause?: unknown): IdemkitError {
  onUncertain();
  return new IdemkitError("operation_uncertain", { details: { operationId }, cause });
}

function stored<T>(bytes: Uint8Array | null): Stored<T> {
  return results.decode(bytes ?? new Uint8Array(0)) as Stored<T>;
}

function deadlineOf<T>({ deadlineMs }: EffectOptions<T>): number {
  return deadlineMs ?? 10_000;
}

function checkOptions<T>(name: unknown, options: EffectOptions<T>): void {
  if (typeof name !== "string" || name === "" || name.length > 200) {
    throw invalid("effect", "must have a name of 1 to 200 characters");
  }
  checkNames(`effect ${name}`, options, ["run", "recover", "honoursKeys", "deadlineMs", "graceMs"]);
  checkInteger(`effect ${name}.deadlineMs`, deadlineOf(options), 1, 3_600_000);
  checkInteger(`effect ${name}.graceMs`, options.graceMs ?? 5000, 0, 3_600_000);
}
