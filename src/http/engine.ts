import { execute } from "../core/execute.ts";
import type { Completion, Executed, Execution, RunContext } from "../core/execution.ts";
import { fingerprintOf } from "../core/fingerprint.ts";
import { checkIdentity } from "../core/identity.ts";
import { sharingSignal } from "../core/lazy-signal.ts";
import type { Answer, Identity } from "../core/ports.ts";
import { executeWithEffects } from "../effects/execute-with-effects.ts";
import type { EffectsContext } from "../effects/execution.ts";
import { IdemkitError, isIdemkitError } from "../errors.ts";
import { systemRuntime } from "../internal/runtime.ts";
import type { PostgresDatabase } from "../postgres/connections.ts";
import { answerOfProblem, answerOfRecord } from "./answer.ts";
import type { Capture } from "./answer.ts";
import { checkMethod, contextOf } from "./command.ts";
import { codingsOf, decoded } from "./decode.ts";
import type { Exchange, Incoming } from "./exchange.ts";
import { storable } from "./headers.ts";
import { required } from "./key.ts";
import { problemOf, problemWithStatus } from "./problem.ts";
import type { HandlerOnce, OutcomeEvent, Route } from "./route.ts";
import { isDefinitive, isFailure, statusOf } from "./status.ts";
import { unrecorded } from "./unrecorded.ts";

/** One request on its way through the engine. */
interface Call<Tx, Sent> {
  readonly route: Route<Tx>;
  readonly exchange: Exchange<Tx, Sent>;
  readonly startedMs: number;
  /** The caller's key, once it is read. */
  key: string | undefined;
  /** Cleared by `notFinal()` of the current run. */
  final: boolean;
  /** The response that the current run came to, and the part of it that is stored. */
  capture?: Capture;
  answer?: Answer;
  /** What idemkit itself answers instead. */
  error?: IdemkitError;
}

/**
 * Answers one request to a protected route: the HTTP contract of DESIGN section 6, alike for every binding.
 * @throws what the framework must render: programming errors before the handler, and where the framework renders
 * thrown errors outside only, what the handler threw.
 */
export async function serve<Tx, Sent>(
  route: Route<Tx>,
  incoming: Incoming,
  exchange: Exchange<Tx, Sent>,
): Promise<Sent> {
  const call: Call<Tx, Sent> = { route, exchange, startedMs: performance.now(), key: undefined, final: true };
  try {
    const identity = identityOf(call, incoming);
    const given = incoming.command();
    const command = given instanceof Promise ? await given : given;
    const ended = await executed(
      call,
      executionOf(call, identity, fingerprintOf(command, contextOf(incoming))),
    );
    tell(call, ended);
    return await send(call, ended);
  } catch (error) {
    return answerError(call, error);
  }
}

/** Fixed before any I/O, and before the handler sees the request. */
function identityOf<Tx, Sent>(call: Call<Tx, Sent>, incoming: Incoming): Identity {
  checkMethod(incoming.method);
  const { route } = call;
  call.key = route.keyOptional ? incoming.key() : required(incoming.key());
  const identity: Identity = {
    scope: incoming.scope(),
    operation: route.operation,
    key: call.key ?? systemRuntime.newId(), // identifies an unrecorded run in this process only
  };
  checkIdentity(identity);
  return identity;
}

function executionOf<Tx, Sent>(
  call: Call<Tx, Sent>,
  identity: Identity,
  fingerprint: Uint8Array,
): Execution<Tx> {
  const { route, exchange, key } = call;
  const execution: Execution<Tx> = {
    database: route.database,
    identity,
    fingerprint,
    settings: route.settings,
    runtime: systemRuntime,
    run: (context) => run(call, context),
    render: (error) => render(call, error),
    canRunAgain: () => exchange.canRunAgain(),
  };
  return key === undefined ? unrecorded(execution) : execution;
}

/** In the mode of the route; both have one way to run and to render. */
function executed<Tx, Sent>(call: Call<Tx, Sent>, execution: Execution<Tx>): Promise<Executed> {
  const { lease, database } = call.route;
  if (lease === undefined) return execute(execution);
  return executeWithEffects({
    ...execution,
    database: database as PostgresDatabase<Tx>, // checked when the route was made
    lease,
    command: null,
    run: (context: EffectsContext<Tx>) => runWith(call, (notFinal) => ({ ...context, notFinal })),
  });
}

function run<Tx, Sent>(call: Call<Tx, Sent>, context: RunContext<Tx>): Promise<Completion> {
  const { tx, operationId } = context;
  return runWith(call, (notFinal) => sharingSignal({ tx, key: call.key, operationId, notFinal }, context));
}

async function runWith<Tx, Sent>(
  call: Call<Tx, Sent>,
  onceOf: (notFinal: () => void) => HandlerOnce<Tx>,
): Promise<Completion> {
  call.final = true;
  const capture = await call.exchange.attempt(onceOf(() => void (call.final = false)));
  if (capture.rendered === true) return refused(call, capture);
  call.capture = capture;
  if (!call.final || isFailure(capture.status)) return { disposition: "discard" };
  return { disposition: "keep", answer: await storedAnswer(call, capture) };
}

/** Called after the roll-back: the answer is stored where it is definitive. */
async function render<Tx, Sent>(call: Call<Tx, Sent>, error: unknown): Promise<Completion> {
  const own = ownError(call, error);
  if (own !== undefined) {
    call.error = own;
    return { disposition: "discard" };
  }
  return refused(call, await call.exchange.render(error));
}

async function refused<Tx, Sent>(call: Call<Tx, Sent>, capture: Capture): Promise<Completion> {
  call.capture = capture;
  if (!call.final || !isDefinitive(capture.status)) return { disposition: "discard" };
  return { disposition: "refuse", answer: await storedAnswer(call, capture) };
}

/** What is stored of a response. */
async function storedAnswer<Tx, Sent>(call: Call<Tx, Sent>, capture: Capture): Promise<Answer> {
  const { status, headers, body } = capture;
  const { stored, maxResponseBytes } = call.route;
  const codings = codingsOf(headers);
  const bytes = codings.length === 0 ? body : await decoded(body, codings, maxResponseBytes);
  call.answer = { status, headers: storable(headers, stored), body: bytes };
  return call.answer;
}

/** Errors about the response itself, and a handler that did not end: nobody else can answer for them. */
function ownError<Tx, Sent>({ exchange }: Call<Tx, Sent>, error: unknown): IdemkitError | undefined {
  if (!isIdemkitError(error)) return undefined;
  const ofResponse = error.code === "response_too_large" || error.code === "response_unsupported";
  const timedOut = error.code === "handler_timed_out" && exchange.pending();
  return ofResponse || timedOut ? error : undefined;
}

function send<Tx, Sent>(call: Call<Tx, Sent>, ended: Executed): Sent | Promise<Sent> {
  const { exchange, route } = call;
  switch (ended.outcome) {
    case "executed":
      return sendExecuted(call, ended);
    case "replayed":
      return exchange.sendAnswer(answerOfRecord(ended.record, true));
    case "in-progress":
      return exchange.sendAnswer(answerOfProblem(problemOf(new IdemkitError("operation_in_progress"))));
    case "uncertain": {
      const details = { operationId: ended.operationId };
      return exchange.sendAnswer(
        answerOfProblem(problemOf(new IdemkitError("operation_uncertain", { details }))),
      );
    }
    case "mismatch": {
      const error = new IdemkitError("idempotency_key_reused");
      return exchange.sendAnswer(answerOfProblem(problemWithStatus(error, route.mismatchStatus)));
    }
  }
}

type EndedExecuted = Extract<Executed, { outcome: "executed" }>;

function sendExecuted<Tx, Sent>(call: Call<Tx, Sent>, ended: EndedExecuted): Sent | Promise<Sent> {
  const { exchange, capture, answer, error } = call;
  if (ended.disposition === "discard" && error !== undefined) {
    return exchange.sendAnswer(answerOfProblem(problemOf(error)));
  }
  // Where the answer to an earlier COMMIT was lost, the record that is there wins over what a later run made.
  const own = ended.disposition === "discard" || ended.record.body === answer?.body;
  if (own && capture !== undefined) return exchange.sendCapture(capture);
  if (ended.disposition === "discard") throw new Error("idemkit: a discarded run has no answer");
  return exchange.sendAnswer(answerOfRecord(ended.record, false));
}

/** Answers what idemkit knows how to; anything else is the framework's, as long as it can render it. */
async function answerError<Tx, Sent>(call: Call<Tx, Sent>, error: unknown): Promise<Sent> {
  const known = isIdemkitError(error) ? error : undefined;
  report(call, { error });
  const tellable = known !== undefined && (!isFailure(statusOf(known.code)) || known.retryable);
  if (!tellable && !call.exchange.engaged() && ownError(call, error) === undefined) throw error;
  return call.exchange.sendAnswer(answerOfProblem(problemOf(error)));
}

function tell<Tx, Sent>(call: Call<Tx, Sent>, ended: Executed): void {
  const { outcome } = ended;
  const known = "record" in ended ? ended.record : undefined;
  const disposition = "disposition" in ended ? ended.disposition : known?.disposition;
  const operationId = "operationId" in ended ? ended.operationId : known?.operationId;
  report(call, {
    outcome,
    ...(disposition === undefined ? {} : { disposition }),
    ...(operationId === undefined ? {} : { operationId }),
    ...(call.error === undefined ? {} : { error: call.error }),
  });
}

function report<Tx, Sent>({ route, startedMs }: Call<Tx, Sent>, event: Partial<OutcomeEvent>): void {
  const { operation, onOutcome } = route;
  if (onOutcome === undefined) return;
  try {
    onOutcome({ operation, durationMs: performance.now() - startedMs, ...event });
  } catch {
    // A metric that fails must not change an answer.
  }
}
