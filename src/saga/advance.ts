import type { Json } from "../core/canonical-json.ts";
import { jsonCodec } from "../core/codec.ts";
import { IdemkitError, isIdemkitError } from "../errors.ts";
import { asLost } from "../effects/lease-store.ts";
import { backoffMs } from "../internal/backoff.ts";
import type { Runtime } from "../internal/runtime.ts";
import type { PostgresDatabase } from "../postgres/connections.ts";
import type { SagaDefinition, SagaStep } from "./definition.ts";
import { nextOf, pivotOf } from "./plan.ts";
import type { Next, PlannedStep, StepRow } from "./plan.ts";
import { runStep, settleStep } from "./run-step.ts";
import type { LeasedSaga, Move, SagaStore } from "./saga-store.ts";

/** A saga under way in this process. */
export interface UnderWay<Tx> {
  readonly database: PostgresDatabase<Tx>;
  readonly store: SagaStore;
  readonly definition: SagaDefinition<Json, Tx>;
  readonly saga: LeasedSaga;
  /** Aborts when the saga is lost to another runner. */
  readonly signal: AbortSignal;
  /** Aborts when this runner is to stop: the step in progress is finished, and the saga given back. */
  readonly stopped: AbortSignal;
  /** Pause between two looks at what nobody knew. */
  readonly uncertainEveryMs: number;
  /** Told of each try of a step that went wrong: one that never succeeds must not be silent. */
  readonly failed: (step: string, error: unknown) => void;
  readonly runtime: Runtime;
}

const json = jsonCodec<unknown>();
const defaultTimeoutMs = 300_000;
const defaultRetry = { maxTries: 5, baseMs: 200, maxMs: 30_000 };

/**
 * Works on a leased saga until it ends, has to wait, or is lost to another runner.
 * @returns the state it was left in
 */
export async function advance<Tx>(underWay: UnderWay<Tx>): Promise<string> {
  const { database, store } = underWay;
  let { saga } = underWay;
  for (;;) {
    const ledger = await store.steps(saga.sagaId);
    const move = underWay.stopped.aborted
      ? { state: saga.state, tries: saga.tries, waitMs: 0 }
      : await moveOf(withSaga(underWay, saga), ledger);
    if (move === "asleep") return saga.state;
    if (move === undefined) {
      saga = moved(saga, { state: saga.state, tries: 0 });
      continue;
    }
    await database.connections.query(store.move(saga, move)).catch((error: unknown) => {
      throw asLost(error);
    });
    const ended = move.state !== "running" && move.state !== "compensating";
    if (ended || move.waitMs !== undefined) return move.state;
    saga = moved(saga, { state: move.state, tries: move.tries });
  }
}

function withSaga<Tx>(underWay: UnderWay<Tx>, saga: LeasedSaga): UnderWay<Tx> {
  return { ...underWay, saga };
}

function moved(saga: LeasedSaga, to: Pick<LeasedSaga, "state" | "tries">): LeasedSaga {
  return { ...saga, ...to };
}

/** One step, and where it takes the saga; nothing where it is simply done, `asleep` where it has moved it already. */
async function moveOf<Tx>(
  underWay: UnderWay<Tx>,
  ledger: readonly StepRow[],
): Promise<Move | "asleep" | undefined> {
  const { definition, saga } = underWay;
  for (const row of ledger) stepNamed(definition, row.step);
  const planned = definition.steps.map(plannedOf);
  const { forwardOnly } = pivotOf(planned, ledger);
  const next = nextOf(planned, saga.state, ledger);
  const late = saga.state === "running" && saga.overdue && !forwardOnly;
  if (late && next.next !== "end") return turnedRound(underWay, { reason: "deadline" });
  switch (next.next) {
    case "end":
      return { state: next.state, tries: 0 };
    case "compensate":
      return forwardOnly
        ? { state: "uncertain", tries: 0, resumeState: "running" }
        : { state: "compensating", failure: next.failure, tries: 0 };
    case "wait":
      return waitOrGiveUp(underWay, next, forwardOnly);
    case "do":
    case "settle":
      return tried(underWay, ledger, next, forwardOnly);
  }
}

async function tried<Tx>(
  underWay: UnderWay<Tx>,
  ledger: readonly StepRow[],
  next: Extract<Next, { next: "do" | "settle" }>,
  forwardOnly: boolean,
): Promise<Move | "asleep" | undefined> {
  const { definition, saga } = underWay;
  const step = stepNamed(definition, next.step);
  try {
    if (next.next === "settle") await settleStep(underWay, step, ledger);
    else return await runStep(underWay, step, next.direction, ledger);
    return undefined;
  } catch (error) {
    if (isIdemkitError(error, "attempt_lost")) throw error;
    if (isIdemkitError(error, "effect_refused")) return refusal(next, forwardOnly);
    if (isIdemkitError(error, "operation_uncertain")) {
      return { state: "uncertain", tries: 0, resumeState: saga.state, ...askedAgain(underWay, step, next) };
    }
    underWay.failed(step.name, error);
    const mayFail = next.next === "do" && next.direction === "action" && !forwardOnly;
    return again(underWay, step, mayFail, error);
  }
}

/** Where there is somebody to ask, the answer may come later; else only a person can tell. */
function askedAgain<Tx>(
  { uncertainEveryMs }: UnderWay<Tx>,
  { kind, options }: SagaStep<Json, Tx>,
  next: Extract<Next, { next: "do" | "settle" }>,
): Pick<Move, "waitMs"> {
  const isAction = next.next === "settle" || next.direction === "action";
  const asked = kind === "effect" && (isAction ? options.recover : options.recoverCompensation) !== undefined;
  return asked ? { waitMs: uncertainEveryMs } : {};
}

/** A refused action is in the ledger and is planned from there; nobody can go on from a refused compensation but by hand. */
function refusal(next: Extract<Next, { next: "do" | "settle" }>, forwardOnly: boolean): Move | undefined {
  const isAction = next.next === "settle" || next.direction === "action";
  if (isAction && !forwardOnly) return undefined;
  return { state: "uncertain", tries: 0, resumeState: isAction ? "running" : "compensating" };
}

/** An outage is never charged; a step that keeps failing before the pivot fails its saga. */
async function again<Tx>(
  underWay: UnderWay<Tx>,
  { name, options }: SagaStep<Json, Tx>,
  mayFail: boolean,
  error: unknown,
): Promise<Move | undefined> {
  const { database, saga, runtime } = underWay;
  const policy = { ...defaultRetry, ...options.retry };
  const kind = database.classify(error);
  const charged = kind !== "retry" && kind !== "unavailable";
  const tries = saga.tries + (charged ? 1 : 0);
  if (mayFail && tries >= policy.maxTries) {
    return turnedRound(underWay, { reason: "retries-exhausted", step: name });
  }
  const waitMs = backoffMs(Math.max(saga.tries, charged ? 0 : 3), policy, runtime.random);
  return { state: saga.state, tries, waitMs };
}

interface Failure {
  readonly [name: string]: string;
  readonly reason: string;
}

/**
 * Turns the saga round, unless the ledger says by now that it may not: what failed may have failed behind its COMMIT, a
 * reply may have come, and a call that was left open may have been the pivot.
 */
async function turnedRound<Tx>(underWay: UnderWay<Tx>, failure: Failure): Promise<Move | undefined> {
  const { definition, saga, store } = underWay;
  const ledger = await store.steps(saga.sagaId);
  const { forwardOnly, open } = pivotOf(definition.steps.map(plannedOf), ledger);
  const failed = ledger.find(({ step, direction }) => step === failure["step"] && direction === "action");
  if (forwardOnly || failed?.state === "done") return undefined;
  if (open === undefined) return { state: "compensating", failure: json.encode(failure), tries: 0 };
  const unsettled = await tried(underWay, ledger, { next: "settle", step: open }, false);
  if (unsettled === "asleep") return undefined;
  return unsettled ?? turnedRound(underWay, failure);
}

async function waitOrGiveUp<Tx>(
  underWay: UnderWay<Tx>,
  { step, direction, ageMs }: Extract<Next, { next: "wait" }>,
  forwardOnly: boolean,
): Promise<Move | undefined> {
  const { definition, saga } = underWay;
  const { options } = stepNamed(definition, step);
  const timeoutMs = "timeoutMs" in options ? (options.timeoutMs ?? defaultTimeoutMs) : defaultTimeoutMs;
  const leftMs = timeoutMs - ageMs;
  if (leftMs > 0) return { state: saga.state, tries: 0, waitMs: leftMs };
  const mayGiveUp = direction === "action" && !forwardOnly;
  return mayGiveUp
    ? turnedRound(underWay, { reason: "no-reply", step })
    : { state: saga.state, tries: 0, waitMs: timeoutMs };
}

function plannedOf<Tx>({ name, kind, options }: SagaStep<Json, Tx>): PlannedStep {
  const undo = kind === "message" ? options.compensation : options.compensate;
  return { name, compensable: undo !== undefined, pivot: options.pivot === true };
}

function stepNamed<Tx>({ name, steps }: SagaDefinition<Json, Tx>, wanted: string): SagaStep<Json, Tx> {
  const found = steps.find((each) => each.name === wanted);
  if (found !== undefined) return found;
  // Without it nobody would undo what it did.
  const detail = `saga ${name} has no step ${wanted}, which is under way: keep it until no such saga is left`;
  throw new IdemkitError("option_invalid", { detail, details: { at: wanted } });
}
