import type { Json } from "../core/canonical-json.ts";
import type { OutgoingEvent } from "../core/event.ts";
import type { Recovered } from "../effects/effect.ts";
import { checkFunction, checkInteger, checkNames, invalid } from "../internal/options.ts";

/** What a step is given. */
export interface StepContext<I> {
  readonly sagaId: string;
  readonly input: I;
  /** The results of the steps that are done, by name. */
  readonly results: Readonly<Record<string, unknown>>;
  /** Derived from the saga, the step and the direction, once; the same in every try. */
  readonly key: string;
  readonly signal: AbortSignal;
}

/** How often a step is tried before it counts as failed; after the pivot, and for compensations, it never does. */
export interface RetryPolicy {
  /** @defaultValue 5 */
  readonly maxTries?: number;
  /**
   * The pause is uniform between 0 and this, doubled with each try.
   * @defaultValue 200
   */
  readonly baseMs?: number;
  /** @defaultValue 30_000 */
  readonly maxMs?: number;
}

interface StepBase {
  readonly retry?: RetryPolicy;
  /**
   * Once this step is done the saga goes forward only: it is not compensated any more, and later steps are tried until they
   * succeed.
   * @defaultValue false
   */
  readonly pivot?: boolean;
}

/** A step that calls another system; its calls follow the rules of `effect`. */
export interface EffectStepOptions<I, T> extends StepBase {
  /** `throw refuse(value)` is a definitive no: the saga is compensated. Any other throw is tried again. */
  run(context: StepContext<I>): Promise<T>;
  recover?(context: StepContext<I>): Promise<Recovered<T>>;
  compensate?(context: StepContext<I> & { readonly result: T }): Promise<unknown>;
  recoverCompensation?(context: StepContext<I> & { readonly result: T }): Promise<Recovered<unknown>>;
  readonly honoursKeys?: boolean;
  readonly deadlineMs?: number;
  readonly graceMs?: number;
}

/** A step whose writes are in this database: they commit with the step's record. */
export interface LocalStepOptions<I, T, Tx> extends StepBase {
  run(context: StepContext<I>, tx: Tx): Promise<T>;
  compensate?(context: StepContext<I> & { readonly result: T }, tx: Tx): Promise<unknown>;
}

/** A step that another service does: its command goes through the outbox, and the saga sleeps until the reply. */
export interface MessageStepOptions<I> extends StepBase {
  command(context: StepContext<I>): OutgoingEvent;
  compensation?(context: StepContext<I>): OutgoingEvent;
  /**
   * How long a reply is waited for before the saga is compensated. After the pivot the wait goes on.
   * @defaultValue 300_000
   */
  readonly timeoutMs?: number;
}

/** One step of a saga. */
export type SagaStep<I, Tx> = { readonly name: string } & (
  | { readonly kind: "effect"; readonly options: EffectStepOptions<I, never> }
  | { readonly kind: "local"; readonly options: LocalStepOptions<I, never, Tx> }
  | { readonly kind: "message"; readonly options: MessageStepOptions<I> }
);

/** A saga as data and functions. */
export interface SagaDefinition<I extends Json, Tx> {
  readonly name: string;
  readonly steps: readonly SagaStep<I, Tx>[];
  /** How long a saga may take until its pivot is done, before it is compensated. */
  readonly deadlineMs?: number;
}

/** A step that calls another system. */
export function step<I, T, Tx = unknown>(name: string, options: EffectStepOptions<I, T>): SagaStep<I, Tx> {
  const known = [
    "run",
    "recover",
    "compensate",
    "recoverCompensation",
    "honoursKeys",
    "deadlineMs",
    "graceMs",
  ];
  const at = `step ${name}`;
  checkStep(at, options, [...known, "retry", "pivot"]);
  checkFunctions(at, options, ["run"], ["recover", "compensate", "recoverCompensation"]);
  checkWhole(at, options, ["deadlineMs"], 1);
  checkWhole(at, options, ["graceMs"], 0);
  // The result's type is between run, recover and compensate of one step; nobody else sees it.
  return { name, kind: "effect", options: options as unknown as EffectStepOptions<I, never> };
}

/** A step whose writes are in this database. */
export function localStep<I, T, Tx>(name: string, options: LocalStepOptions<I, T, Tx>): SagaStep<I, Tx> {
  const at = `step ${name}`;
  checkStep(at, options, ["run", "compensate", "retry", "pivot"]);
  checkFunctions(at, options, ["run"], ["compensate"]);
  return { name, kind: "local", options: options as unknown as LocalStepOptions<I, never, Tx> };
}

/** A step that another service does. */
export function messageStep<I, Tx = unknown>(name: string, options: MessageStepOptions<I>): SagaStep<I, Tx> {
  const at = `step ${name}`;
  checkStep(at, options, ["command", "compensation", "timeoutMs", "retry", "pivot"]);
  checkFunctions(at, options, ["command"], ["compensation"]);
  checkWhole(at, options, ["timeoutMs"], 1);
  return { name, kind: "message", options };
}

function checkStep(at: string, options: StepBase, known: readonly string[]): void {
  checkNames(at, options, known);
  const { retry } = options;
  if (retry === undefined) return;
  checkNames(`${at}.retry`, retry, ["maxTries", "baseMs", "maxMs"]);
  checkWhole(`${at}.retry`, retry, ["maxTries"], 1);
  checkWhole(`${at}.retry`, retry, ["baseMs", "maxMs"], 0);
}

function checkFunctions(
  at: string,
  options: object,
  needed: readonly string[],
  optional: readonly string[],
): void {
  for (const name of [...needed, ...optional]) {
    const given: unknown = Reflect.get(options, name);
    if (given !== undefined || needed.includes(name)) checkFunction(`${at}.${name}`, given);
  }
}

/** Whole numbers, where they are given. */
function checkWhole(at: string, options: object, names: readonly string[], min: number): void {
  for (const name of names) {
    const given = Reflect.get(options, name) as number | undefined;
    if (given !== undefined) checkInteger(`${at}.${name}`, given, min, longestMs);
  }
}

function isStep(given: unknown): boolean {
  return typeof given === "object" && given !== null && "kind" in given;
}

/** Ten years. */
const longestMs = 315_360_000_000;
const validName = /^[a-z0-9]+(?:[-._][a-z0-9]+)*$/;

/**
 * A saga: steps in order, each with what undoes it.
 * @throws IdemkitError `option_invalid`: a name is malformed or used twice, or there are two pivots.
 */
export function defineSaga<I extends Json, Tx>(
  name: string,
  definition: Omit<SagaDefinition<I, Tx>, "name">,
): SagaDefinition<I, Tx> {
  checkNames(`saga ${name}`, definition, ["steps", "deadlineMs"]);
  checkWhole(`saga ${name}`, definition, ["deadlineMs"], 1);
  const given: unknown = definition.steps;
  if (!Array.isArray(given) || !given.every(isStep)) {
    throw invalid(`saga ${name}.steps`, "must be an array of steps: localStep(…), step(…) or messageStep(…)");
  }
  const names = definition.steps.map((each) => each.name);
  for (const each of [name, ...names]) {
    if (!validName.test(each) || each.length > 100) {
      throw invalid(each, "must be a lower-case name such as reserve-stock");
    }
  }
  if (new Set(names).size !== names.length) throw invalid(`saga ${name}.steps`, "must have a name each");
  if (names.length === 0) throw invalid(`saga ${name}.steps`, "must hold at least one step");
  const pivots = definition.steps.filter(({ options }) => options.pivot === true);
  if (pivots.length > 1) throw invalid(`saga ${name}.steps`, "may have one pivot");
  return { ...definition, name };
}
