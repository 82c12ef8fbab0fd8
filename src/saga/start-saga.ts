import type { Json } from "../core/canonical-json.ts";
import { jsonCodec } from "../core/codec.ts";
import { IdemkitError } from "../errors.ts";
import { checkFunction, checkNames, checkObject, checkOneOf } from "../internal/options.ts";
import { systemRuntime } from "../internal/runtime.ts";
import type { Call, PostgresDatabase, Result } from "../postgres/connections.ts";
import { checkPostgresDatabase } from "../postgres/database.ts";
import { sessionOf } from "../postgres/session-key.ts";
import { statementOf } from "../postgres/statement.ts";
import type { SagaDefinition } from "./definition.ts";
import type { Direction, SagaState } from "./plan.ts";

const json = jsonCodec<unknown>();
const directions: readonly Direction[] = ["action", "compensation"];

/** A saga to start. */
export interface StartSagaOptions<I> {
  readonly input: I;
  /**
   * The saga's id, a UUID: starting the same one again does nothing.
   * @defaultValue a new UUIDv7
   */
  readonly sagaId?: string;
  /** The transaction of a running handler, to start the saga only if that commits. */
  readonly tx?: object;
}

/**
 * Starts a saga. A runner of its name takes it up (`startSagas`).
 * @returns the saga's id, and whether it was started now
 * @throws IdemkitError `transaction_closed` for a `tx` that is not a running handler's, `option_invalid`.
 */
export async function startSaga<I extends Json, Tx>(
  database: PostgresDatabase<Tx>,
  definition: SagaDefinition<I, Tx>,
  options: StartSagaOptions<I>,
): Promise<{ readonly sagaId: string; readonly started: boolean }> {
  checkPostgresDatabase(database);
  checkObject("definition", definition);
  checkNames("startSaga", options, ["input", "sagaId", "tx"]);
  const { name, deadlineMs } = definition;
  const { input, tx, sagaId = systemRuntime.newId() } = options;
  const deadline = deadlineMs === undefined ? null : deadlineMs / 1000;
  const values = [sagaId, name, json.encode(input), deadline];
  const { rows } = await sent(database, { ...statementOf("saga-start", database.schema), values }, tx);
  return { sagaId, started: rows.length > 0 };
}

function sent<Tx>(database: PostgresDatabase<Tx>, call: Call, tx: object | undefined): Promise<Result> {
  if (tx === undefined) return database.connections.query(call);
  return session(tx).run(call);
}

function session(tx: object): { run(call: Call): Promise<Result> } {
  const found = sessionOf(tx);
  if (found === undefined) throw new IdemkitError("transaction_closed", { detail: "give a handler's tx" });
  return found;
}

/** Where a saga is, as its starter sees it. */
export interface SagaStatus {
  readonly name: string;
  readonly state: SagaState;
  /** Why it is, or was, compensated. */
  readonly failure: unknown;
}

/** A saga's status, or `undefined` where there is none of this id, or its retention is over. */
export async function sagaStatus<Tx>(
  database: PostgresDatabase<Tx>,
  sagaId: string,
): Promise<SagaStatus | undefined> {
  const { connections, schema } = checkPostgresDatabase(database);
  const { rows } = await connections.query({
    ...statementOf("saga-find", schema),
    values: [sagaId],
  });
  const [row] = rows;
  if (row === undefined) return undefined;
  const failure = row["failure"] as Uint8Array | null;
  return {
    name: row["name"] as string,
    state: row["state"] as SagaState,
    failure: failure === null ? undefined : json.decode(failure),
  };
}

/** What an operator found out about a step whose outcome nobody knew, or did about one that was refused for good. */
export interface StepResolution {
  readonly stepName: string;
  /** @defaultValue "action" */
  readonly direction?: Direction;
  /** `absent` lets the step be done again, under the same key. */
  readonly as: "done" | "absent";
  /** What the step came to, where it is `done`. */
  readonly result?: unknown;
}

/**
 * Settles by hand a step of an uncertain saga, which then goes on the way it went: one whose outcome nobody knew, a refused
 * compensation, or an action refused after the pivot.
 * @returns whether there was such a step; false also in the moment in which a runner asks for its outcome again
 */
export async function resolveSagaStep<Tx>(
  database: PostgresDatabase<Tx>,
  sagaId: string,
  resolution: StepResolution,
): Promise<boolean> {
  const { connections, schema } = checkPostgresDatabase(database);
  checkObject("resolution", resolution);
  const { stepName, direction = "action", as, result = null } = resolution;
  checkOneOf("resolution.as", as, ["done", "absent"]);
  checkOneOf("resolution.direction", direction, directions);
  const values = [sagaId, stepName, direction, as, as === "done" ? json.encode(result) : null];
  const { rows } = await connections.query({
    ...statementOf("saga-resolve", schema),
    values,
  });
  return rows.length > 0;
}

/** A reply to a step that waits. */
export interface SagaReply {
  readonly sagaId: string;
  readonly stepName: string;
  /** @defaultValue "action" */
  readonly direction?: Direction;
  /** `refused` is a definitive no: the saga is compensated. */
  readonly as: "done" | "refused";
  readonly result?: unknown;
}

/**
 * Gives a waiting step its reply, in the transaction of the event that brought it (the `tx` of an inbox handler).
 * @returns false where no step waits for it: it came late, or twice
 */
export async function replyToSaga<Tx>(
  database: PostgresDatabase<Tx>,
  tx: object,
  reply: SagaReply,
): Promise<boolean> {
  checkPostgresDatabase(database);
  checkObject("reply", reply);
  const { sagaId, stepName, direction = "action", as, result } = reply;
  checkOneOf("reply.as", as, ["done", "refused"]);
  checkOneOf("reply.direction", direction, directions);
  const values = [sagaId, stepName, direction, as, json.encode(result)];
  const { rows } = await session(tx).run({ ...statementOf("saga-reply", database.schema), values });
  return rows.length > 0;
}

/** One step of a saga as a participant does it. */
export interface Participation {
  /** The participant's name: a database may serve several, and the runner too. */
  readonly participant: string;
  readonly sagaId: string;
  readonly stepName: string;
  readonly direction: Direction;
}

/** What became of a participant's step. `blocked`: its compensation came first, so it must not happen any more. */
export type Participated<T> =
  | { readonly outcome: "executed" | "duplicate"; readonly result: T }
  | { readonly outcome: "blocked" }
  /** A compensation of an action that never came: nothing to undo, and the action is blocked from now on. */
  | { readonly outcome: "nothing-to-compensate" };

/**
 * Does a participant's step once, in the transaction of the event that asks for it. Identity is saga, step and direction, so a
 * repeat gets the first result; and a compensation that arrives before its action blocks it.
 */
export async function participate<T, Tx>(
  database: PostgresDatabase<Tx>,
  tx: object,
  part: Participation,
  work: () => Promise<T>,
): Promise<Participated<T>> {
  checkPostgresDatabase(database);
  checkObject("part", part);
  checkOneOf("direction", part.direction, directions);
  checkFunction("work", work);
  const ledger = participantLedger(database.schema, session(tx), part);
  const isCompensation = part.direction === "compensation";
  // The action's row is taken first in both directions, so that the two cannot wait for each other.
  const blockedNow = isCompensation && (await ledger.insert("action", "blocked"));
  if (!(await ledger.insert(part.direction, "intent"))) return repeated(await ledger.find(part.direction));
  if (blockedNow || (isCompensation && (await ledger.find("action")).state === "blocked")) {
    await ledger.end(json.encode(null));
    return { outcome: "nothing-to-compensate" };
  }
  const bytes = json.encode(await work());
  await ledger.end(bytes);
  return { outcome: "executed", result: json.decode(bytes) as T };
}

interface ParticipantRow {
  readonly state: unknown;
  readonly result: Uint8Array | null;
}

function repeated<T>({ state, result }: ParticipantRow): Participated<T> {
  if (state === "blocked") return { outcome: "blocked" };
  return { outcome: "duplicate", result: json.decode(result ?? new Uint8Array(0)) as T };
}

interface ParticipantLedger {
  insert(direction: Direction, state: "intent" | "blocked"): Promise<boolean>;
  find(direction: Direction): Promise<ParticipantRow>;
  end(result: Uint8Array): Promise<void>;
}

function participantLedger(
  schema: string,
  { run }: { run(call: Call): Promise<Result> },
  { participant, sagaId, stepName, direction: own }: Participation,
): ParticipantLedger {
  const keyOf = (direction: Direction): readonly unknown[] => [participant, sagaId, stepName, direction];
  return {
    insert: async (direction, state) => {
      const call = { ...statementOf("saga-participate", schema), values: [...keyOf(direction), state] };
      return (await run(call)).rows.length > 0;
    },
    find: async (direction) => {
      const { rows } = await run({ ...statementOf("saga-participated", schema), values: keyOf(direction) });
      return { state: rows[0]?.["state"], result: (rows[0]?.["result"] ?? null) as Uint8Array | null };
    },
    end: async (result) => {
      await run({ ...statementOf("saga-participant-end", schema), values: [...keyOf(own), result] });
    },
  };
}
