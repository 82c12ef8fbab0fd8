import type { Json } from "../core/canonical-json.ts";
import { jsonCodec } from "../core/codec.ts";
import type { OutgoingEvent } from "../core/event.ts";
import { isRefusal } from "../core/outcome.ts";
import { derivedKey, effects, settleEffect } from "../effects/effect.ts";
import type { EffectCall, EffectOptions, EffectRow, EffectsSettings } from "../effects/effect.ts";
import { asLost } from "../effects/lease-store.ts";
import { IdemkitError } from "../errors.ts";
import { enqueue } from "../outbox/enqueue.ts";
import type { Session } from "../postgres/connections.ts";
import { statementOf } from "../postgres/statement.ts";
import type { UnderWay } from "./advance.ts";
import type { EffectStepOptions, MessageStepOptions, SagaStep, StepContext } from "./definition.ts";
import type { Direction, StepRow } from "./plan.ts";

const json = jsonCodec<unknown>();
/** Statements of a local step may sit idle and wait no longer than those of a command. */
const bounds = { idleTimeoutMs: 10_000, lockTimeoutMs: 5000 };
const defaultTimeoutMs = 300_000;
/** The header that tells a participant which way a step goes. */
const directionHeader = "saga_direction";

/** A step about to be done, with what its functions are given. */
interface Doing<Tx> {
  readonly underWay: UnderWay<Tx>;
  readonly name: string;
  readonly direction: Direction;
  readonly context: StepContext<Json>;
}

/**
 * Does one step in one direction.
 * @returns the move that was made with it, or nothing where the runner goes on at once
 */
export async function runStep<Tx>(
  underWay: UnderWay<Tx>,
  step: SagaStep<Json, Tx>,
  direction: Direction,
  ledger: readonly StepRow[],
): Promise<"asleep" | undefined> {
  const doing = {
    underWay,
    name: step.name,
    direction,
    context: contextOf(underWay, step.name, direction, ledger),
  };
  switch (step.kind) {
    case "effect":
      await effects(effectsSettings(doing, ledger))(effectName(doing), effectOf(step.options, doing));
      return undefined;
    case "local":
      await local(doing, (tx) => {
        const { run, compensate } = step.options;
        if (direction === "action") return run(doing.context, tx);
        return compensate?.(withResult(doing.context, step.name), tx) ?? Promise.resolve(null);
      });
      return undefined;
    case "message":
      await send(doing, step.options);
      return "asleep";
  }
}

/** Finds out what became of an action that was left open; only calls of other systems can be. */
export async function settleStep<Tx>(
  underWay: UnderWay<Tx>,
  step: SagaStep<Json, Tx>,
  ledger: readonly StepRow[],
): Promise<void> {
  const context = contextOf(underWay, step.name, "action", ledger);
  const doing: Doing<Tx> = { underWay, name: step.name, direction: "action", context };
  const [row] = rowsOf(doing, ledger);
  if (step.kind !== "effect" || row === undefined) throw new IdemkitError("operation_uncertain");
  await settleEffect(effectsSettings(doing, ledger), row, effectOf(step.options, doing));
}

function contextOf<Tx>(
  { saga, signal }: UnderWay<Tx>,
  name: string,
  direction: Direction,
  ledger: readonly StepRow[],
): StepContext<Json> {
  const done = ledger.filter((row) => row.direction === "action" && row.state === "done");
  return {
    sagaId: saga.sagaId,
    input: json.decode(saga.input) as Json,
    results: Object.fromEntries(done.map((row) => [row.step, json.decode(row.result ?? new Uint8Array(0))])),
    key: derivedKey(saga.sagaId, `${name}:${direction}`),
    signal,
  };
}

function withResult(
  context: StepContext<Json>,
  name: string,
): StepContext<Json> & { readonly result: never } {
  return { ...context, result: context.results[name] as never };
}

/** Keys are derived from it, so that an action and its compensation have one each. */
function effectName<Tx>({ name, direction }: Doing<Tx>): string {
  return `${name}:${direction}`;
}

function effectsSettings<Tx>(doing: Doing<Tx>, ledger: readonly StepRow[]): EffectsSettings {
  const { saga, store, signal, runtime } = doing.underWay;
  const id = { step: doing.name, direction: doing.direction };
  return {
    operationId: saga.sagaId,
    ledger: {
      intend: (_name, key) => store.intend(saga, id, key),
      end: (_name, state, result) => store.end(saga, id, state, result),
    },
    rows: rowsOf(doing, ledger),
    signal,
    runtime,
    onUncertain: () => {},
    inTransaction: () => false,
  };
}

function rowsOf<Tx>(doing: Doing<Tx>, ledger: readonly StepRow[]): readonly EffectRow[] {
  const own = ledger.filter(({ step, direction }) => step === doing.name && direction === doing.direction);
  return own.flatMap(({ derivedKey: key, state, result, ageMs }) =>
    state === "waiting" || state === "blocked"
      ? []
      : [{ name: effectName(doing), derivedKey: key, state, result, ageMs }],
  );
}

function effectOf<Tx>(
  options: EffectStepOptions<Json, never>,
  { name, direction, context }: Doing<Tx>,
): EffectOptions<unknown> {
  const { run, recover, compensate, recoverCompensation, honoursKeys, deadlineMs, graceMs } = options;
  const given = {
    ...(honoursKeys === undefined ? {} : { honoursKeys }),
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
    ...(graceMs === undefined ? {} : { graceMs }),
  };
  const forth = (call: EffectCall): StepContext<Json> => ({ ...context, ...call });
  const back = (call: EffectCall): StepContext<Json> & { readonly result: never } =>
    withResult(forth(call), name);
  if (direction === "action") {
    const asked = recover === undefined ? {} : { recover: (call: EffectCall) => recover(forth(call)) };
    return { ...given, run: (call) => run(forth(call)), ...asked };
  }
  const asked =
    recoverCompensation === undefined
      ? {}
      : { recover: (call: EffectCall) => recoverCompensation(back(call)) };
  return { ...given, run: async (call) => (await compensate?.(back(call))) ?? null, ...asked };
}

/** Writes and record commit together; a refusal rolls the writes back and is recorded by itself. */
async function local<Tx>(doing: Doing<Tx>, work: (tx: Tx) => Promise<unknown>): Promise<void> {
  const { database, store, saga } = doing.underWay;
  const id = { step: doing.name, direction: doing.direction };
  const session = await open(doing.underWay);
  try {
    const result = json.encode(await work(session.tx));
    await session.commit(store.record(saga, id, "done", result));
  } catch (error) {
    // First: it finds out what a handler may have hidden, that the connection was gone.
    await session.rollback();
    // Drivers have no code for that, and an outage is not the step's fault.
    if (session.broken !== undefined) throw new IdemkitError("idempotency_unavailable", { cause: error });
    if (!isRefusal(error)) throw asLost(error);
    const refusal = json.encode(error.value);
    await database.connections.query(store.record(saga, id, "refused", refusal)).catch((error_: unknown) => {
      throw asLost(error_);
    });
    throw new IdemkitError("effect_refused", { details: { at: doing.name, refusal: error.value } });
  }
}

/** The command, the step's record and the saga's sleep commit together, so that no reply can come too early. */
async function send<Tx>(doing: Doing<Tx>, options: MessageStepOptions<Json>): Promise<void> {
  const { store, saga } = doing.underWay;
  const event =
    doing.direction === "action" ? options.command(doing.context) : options.compensation?.(doing.context);
  if (event === undefined) {
    throw new IdemkitError("option_invalid", { detail: `step ${doing.name} has no compensation` });
  }
  const session = await open(doing.underWay);
  try {
    await enqueue(session.tx as Tx & object, addressed(doing, event));
    await session.commit(
      store.record(saga, { step: doing.name, direction: doing.direction }, "waiting", null),
      store.move(saga, { state: saga.state, tries: 0, waitMs: options.timeoutMs ?? defaultTimeoutMs }),
    );
  } catch (error) {
    await session.rollback();
    throw asLost(error);
  }
}

function addressed<Tx>({ underWay, name, direction }: Doing<Tx>, event: OutgoingEvent): OutgoingEvent {
  const headers = { ...event.headers, [directionHeader]: direction };
  return { ...event, sagaId: underWay.saga.sagaId, stepName: name, headers };
}

async function open<Tx>({ database }: UnderWay<Tx>): Promise<Session<Tx>> {
  const { session } = await database.connections.begin({
    ...statementOf("phase-open", database.schema),
    values: [String(bounds.idleTimeoutMs), String(bounds.lockTimeoutMs)],
  });
  return session;
}
