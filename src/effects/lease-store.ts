import type { Identity, OperationRecord } from "../core/ports.ts";
import { IdemkitError } from "../errors.ts";
import type { Call, Connections, Row, Session } from "../postgres/connections.ts";
import { sqlstateOf } from "../postgres/sqlstate.ts";
import type { EffectRow } from "./effect.ts";
import { statementOf } from "../postgres/statement.ts";
import type { StatementName } from "../postgres/statement.ts";

/** The attempt that owns an operation of the external mode until it ends or its lease does. */
export interface Lease {
  readonly identity: Identity;
  readonly operationId: string;
  readonly attemptId: string;
  /** 1 for the first attempt; more after a take-over. */
  readonly attempt: number;
}

/** The statements of the external mode. Those that need the attempt say so by a compare-and-set on its id (I5). */
export interface LeaseStore {
  /** The lease, or nothing where another attempt, a final answer or an uncertain outcome holds the operation. */
  claim(given: ClaimSettings): Promise<Lease | undefined>;
  effects(operationId: string): Promise<readonly EffectRow[]>;
  /** @throws IdemkitError `attempt_lost` */
  intend(lease: Lease, name: string, derivedKey: string): Promise<void>;
  /** @throws IdemkitError `attempt_lost` */
  end(lease: Lease, name: string, state: "done" | "refused" | "absent", result: Uint8Array): Promise<void>;
  /** Records a phase's result in the transaction of its writes. */
  phase(session: Session<unknown>, lease: Lease, name: string, result: Uint8Array): Promise<void>;
  /** Removes an expired record with its ledger. */
  forget(identity: Identity): Promise<void>;
  finish(lease: Lease, record: OperationRecord, retentionMs: number): Call;
  release(lease: Lease): Promise<void>;
  uncertain(lease: Lease): Promise<void>;
}

/** What a claim writes. */
export interface ClaimSettings {
  readonly identity: Identity;
  readonly operationId: string;
  readonly attemptId: string;
  readonly fingerprint: Uint8Array;
  readonly command: Uint8Array | null;
}

/** SQLSTATE of `1 / 0`: the finish found no row of this attempt. */
const divisionByZero = "22012";

/** The statements over the statement port. */
export function leaseStore(connections: Connections<unknown>, schema: string, leaseMs: number): LeaseStore {
  const leaseSeconds = leaseMs / 1000;
  const call = (name: StatementName, values: readonly unknown[]): Call => ({
    ...statementOf(name, schema),
    values,
  });
  const rowsOf = async (sent: Call): Promise<readonly Row[]> => (await connections.query(sent)).rows;

  return {
    claim: async ({ identity, operationId, attemptId, fingerprint, command }) => {
      const values = [...keyOf(identity), operationId, fingerprint, attemptId, leaseSeconds, command];
      const [row] = await rowsOf(call("lease-claim", values));
      if (row === undefined) return undefined;
      const lease = { identity, attemptId, operationId: row["operation_id"] as string };
      return { ...lease, attempt: row["attempt"] as number };
    },
    effects: async (operationId) => (await rowsOf(call("effect-find", [operationId]))).map(effectOf),
    intend: (lease, name, derivedKey) =>
      changed(connections.query(call("effect-intend", [...mine(lease), leaseSeconds, name, derivedKey]))),
    end: (lease, name, state, result) =>
      changed(connections.query(call("effect-end", [...mine(lease), leaseSeconds, name, state, result]))),
    phase: (session, lease, name, result) =>
      changed(session.run(call("effect-phase", [...mine(lease), leaseSeconds, name, result]))),
    forget: async (identity) => void (await connections.query(call("lease-forget", keyOf(identity)))),
    finish: (lease, { disposition, status, headers, body }, retentionMs) => {
      const answer = [disposition, status, JSON.stringify(headers), body, retentionMs / 1000];
      return call("lease-finish", [...mine(lease), ...answer]);
    },
    release: async (lease) => void (await connections.query(call("lease-release", mine(lease)))),
    uncertain: (lease) => changed(connections.query(call("lease-uncertain", mine(lease)))),
  };
}

/** @throws IdemkitError `attempt_lost`: a compare-and-set that changed nothing */
export async function changed(sent: Promise<{ readonly count: number }>): Promise<void> {
  if ((await sent).count === 0) throw new IdemkitError("attempt_lost");
}

function mine({ identity, attemptId }: Lease): readonly unknown[] {
  return [...keyOf(identity), attemptId];
}

/** Turns the finish's own failure into the error that names it. */
export function asLost(error: unknown): unknown {
  return sqlstateOf(error) === divisionByZero ? new IdemkitError("attempt_lost", { cause: error }) : error;
}

function keyOf({ scope, operation, key }: Identity): readonly string[] {
  return [scope, operation, key];
}

function effectOf(row: Row): EffectRow {
  return {
    name: row["name"] as string,
    derivedKey: row["derived_key"] as string,
    state: row["state"] as EffectRow["state"],
    result: row["result"] as Uint8Array | null,
    ageMs: Number(row["age_ms"]),
  };
}
