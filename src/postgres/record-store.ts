import { lockOf } from "../core/identity.ts";
import type {
  Attempt,
  AttemptSettings,
  Claim,
  Identity,
  OperationRecord,
  RecordStore,
  Unclaimed,
} from "../core/ports.ts";
import { IdemkitError } from "../errors.ts";
import type { Call, Connections, Result, Row, Session } from "./connections.ts";
import { unclaimedOf } from "./record-row.ts";
import { classify, sqlstateOf } from "./sqlstate.ts";
import { statementOf } from "./statement.ts";
import type { Statement } from "./statement.ts";

const undefinedTable = new Set(["42P01", "3F000"]);
const notNullViolation = "23502";

interface Statements {
  readonly claim: Statement;
  readonly claimUnread: Statement;
  readonly find: Statement;
  readonly finish: Statement;
  readonly refuse: Statement;
}

function statementsOf(schema: string): Statements {
  return {
    claim: statementOf("claim", schema),
    claimUnread: statementOf("claim-unread", schema),
    find: statementOf("find", schema),
    finish: statementOf("finish", schema),
    refuse: statementOf("refuse", schema),
  };
}

/** The protocol of PROTOCOLS section 1 over the statement port. */
export function recordStore<Tx>(connections: Connections<Tx>, schema: string): RecordStore<Tx> {
  const statements = statementsOf(schema);
  // Whether sessions are serializable by default is learnt from the first claim.
  let serializableByDefault = false;

  async function find({ scope, operation, key }: Identity): Promise<Unclaimed | undefined> {
    const call = { ...statements.find, values: [scope, operation, key] };
    const { rows } = await connections.query(call).catch(missing);
    return rows[0] === undefined ? undefined : unclaimedOf(rows[0]);
  }

  function opening(identity: Identity, settings: AttemptSettings, unread: boolean): Call {
    const lock = lockOf(schema, identity).toString();
    const { operationId, idleTimeoutMs, lockTimeoutMs } = settings;
    const bounds = [lock, String(idleTimeoutMs), operationId, String(lockTimeoutMs)];
    if (unread) return { ...statements.claimUnread, values: bounds };
    return { ...statements.claim, values: [identity.scope, identity.operation, identity.key, ...bounds] };
  }

  function finishing(
    identity: Identity,
    { retentionMs }: AttemptSettings,
  ): (record: OperationRecord) => Call {
    return (record) => {
      const { operationId, fingerprint, disposition } = record;
      const values = [
        ...keyOf(identity),
        operationId,
        fingerprint,
        disposition,
        ...rest(record, retentionMs),
      ];
      return { ...statements.finish, values };
    };
  }

  async function claim(identity: Identity, settings: AttemptSettings): Promise<Claim<Tx>> {
    const { isolation } = settings;
    const unread = isolation === "serializable" || (isolation === undefined && serializableByDefault);
    const known = unread ? await find(identity) : undefined;
    if (known !== undefined) return known;
    const call = opening(identity, settings, unread);
    const { session, first } = await connections.begin(call, isolation).catch(missing);
    const row = onlyRow(first);
    if (isolation === undefined) serializableByDefault = row["isolation"] === "serializable";
    if (row["locked"] === true) {
      return { claim: "claimed", attempt: attemptOn(session, finishing(identity, settings)) };
    }
    const givenBack = session.rollback();
    if (row["locked"] !== false) return unclaimedOf(row); // need not wait for it
    // Who asks again must not do so while this connection is still out: a storm would hold more and more of them.
    await givenBack;
    return { claim: "locked" };
  }

  return {
    find,
    claim,
    refuse: (identity, record, retentionMs) => {
      const { operationId, fingerprint } = record;
      const values = [...keyOf(identity), operationId, fingerprint, ...rest(record, retentionMs)];
      return decided(connections.query({ ...statements.refuse, values }));
    },
  };
}

/** The open attempt on a session that holds the claim; `finish` makes the statement that decides. */
function attemptOn<Tx>(session: Session<Tx>, finish: (record: OperationRecord) => Call): Attempt<Tx> {
  return {
    tx: session.tx,
    lost: () => session.broken,
    failedBy: (error) =>
      session.broken !== undefined || (sqlstateOf(error) !== undefined && classify(error) === "unavailable"),
    rollback: session.rollback,
    finish: (record) => decided(session.commit(finish(record))),
  };
}

function keyOf({ scope, operation, key }: Identity): readonly string[] {
  return [scope, operation, key];
}

function rest({ status, headers, body }: OperationRecord, retentionMs: number): readonly unknown[] {
  return [status, JSON.stringify(headers), body, retentionMs / 1000];
}

/** Reads the answer of the asserting insert: which column was null tells what happened. */
async function decided(sent: Promise<unknown>): Promise<"committed" | "superseded"> {
  try {
    await sent;
    return "committed";
  } catch (cause) {
    const error = toldAsMissing(cause);
    if (sqlstateOf(error) !== notNullViolation || columnOf(error, "table") !== "idempotency_record") {
      throw error;
    }
    const column = columnOf(error, "column");
    if (column === "fingerprint") return "superseded";
    if (column === "operation_id") throw new IdemkitError("transaction_ended", { cause: error });
    throw error;
  }
}

function missing(cause: unknown): never {
  throw toldAsMissing(cause);
}

function toldAsMissing(cause: unknown): unknown {
  return undefinedTable.has(sqlstateOf(cause) ?? "") ? new IdemkitError("schema_missing", { cause }) : cause;
}

function columnOf(error: unknown, member: "column" | "table"): unknown {
  return typeof error === "object" && error !== null && member in error
    ? Reflect.get(error, member)
    : undefined;
}

function onlyRow({ rows }: Result): Row {
  const [row] = rows;
  if (row === undefined) {
    throw new IdemkitError("idempotency_unavailable", { detail: "the claim returned no row" });
  }
  return row;
}
