import { changed } from "../effects/lease-store.ts";
import type { Call, Connections, Row } from "../postgres/connections.ts";
import { statementOf } from "../postgres/statement.ts";
import type { StatementName } from "../postgres/statement.ts";
import type { Direction, SagaState, StepRow } from "./plan.ts";

/** A saga that a runner has leased. */
export interface LeasedSaga {
  readonly sagaId: string;
  readonly attemptId: string;
  readonly name: string;
  readonly state: "running" | "compensating";
  readonly input: Uint8Array;
  readonly tries: number;
  /** Whether its deadline has passed. */
  readonly overdue: boolean;
}

/** Where a saga goes. */
export interface Move {
  readonly state: SagaState;
  readonly failure?: Uint8Array | null;
  readonly tries: number;
  /** Gives the lease back and sleeps so long; without it the runner goes on at once, and an uncertain saga sleeps for good. */
  readonly waitMs?: number;
  readonly resumeState?: "running" | "compensating";
}

/** A step's identity in the ledger. */
export interface StepId {
  readonly step: string;
  readonly direction: Direction;
}

/** The statements of a runner; each that changes something is a compare-and-set on the attempt (I5). */
export interface SagaStore {
  claim(names: readonly string[], atMost: number): Promise<readonly LeasedSaga[]>;
  steps(sagaId: string): Promise<readonly StepRow[]>;
  intend(saga: LeasedSaga, id: StepId, derivedKey: string): Promise<void>;
  end(saga: LeasedSaga, id: StepId, state: "done" | "refused" | "absent", result: Uint8Array): Promise<void>;
  /** For the transaction of a step's own writes; fails with a division by zero when the attempt is lost. */
  record(
    saga: LeasedSaga,
    id: StepId,
    state: "done" | "waiting" | "refused",
    result: Uint8Array | null,
  ): Call;
  /** Fails with a division by zero when the attempt is lost. */
  move(saga: LeasedSaga, move: Move): Call;
  renewal(attemptIds: readonly string[]): Call;
}

/** The statements over the statement port. */
export function sagaStore(connections: Connections<unknown>, schema: string, leaseMs: number): SagaStore {
  const leaseSeconds = leaseMs / 1000;
  const call = (name: StatementName, values: readonly unknown[]): Call => ({
    ...statementOf(name, schema),
    values,
  });
  const mine = ({ sagaId, attemptId }: LeasedSaga): readonly unknown[] => [sagaId, attemptId, leaseSeconds];

  return {
    claim: async (names, atMost) => {
      const { rows } = await connections.query(call("saga-claim", [names, leaseSeconds, atMost]));
      return rows.map(leasedOf);
    },
    steps: async (sagaId) => (await connections.query(call("saga-steps", [sagaId]))).rows.map(stepOf),
    intend: (saga, { step, direction }, derivedKey) =>
      changed(connections.query(call("saga-step-intend", [...mine(saga), step, direction, derivedKey]))),
    end: (saga, { step, direction }, state, result) =>
      changed(connections.query(call("saga-step-end", [...mine(saga), step, direction, state, result]))),
    record: (saga, { step, direction }, state, result) =>
      call("saga-step-record", [...mine(saga), step, direction, "", state, result]),
    move: ({ sagaId, attemptId }, { state, failure = null, tries, waitMs, resumeState }) => {
      const wait = waitMs === undefined ? null : waitMs / 1000;
      return call("saga-move", [sagaId, attemptId, state, failure, tries, wait, resumeState ?? null]);
    },
    renewal: (attemptIds) => call("saga-renew", [attemptIds, leaseSeconds]),
  };
}

function leasedOf(row: Row): LeasedSaga {
  return {
    sagaId: row["saga_id"] as string,
    attemptId: row["attempt_id"] as string,
    name: row["name"] as string,
    state: row["state"] as LeasedSaga["state"],
    input: row["input"] as Uint8Array,
    tries: row["tries"] as number,
    overdue: row["overdue"] === true,
  };
}

function stepOf(row: Row): StepRow {
  return {
    step: row["step_name"] as string,
    direction: row["direction"] as Direction,
    derivedKey: row["derived_key"] as string,
    state: row["state"] as StepRow["state"],
    result: row["result"] as Uint8Array | null,
    ageMs: Number(row["age_ms"]),
  };
}
