import type { Isolation } from "../core/ports.ts";
import { IdemkitError } from "../errors.ts";
import { checkNames, invalid } from "../internal/options.ts";
import type { Call, Connections, PostgresDatabase, Result, Session } from "./connections.ts";
import { postgresDatabase } from "./database.ts";
import { guardedClient } from "./guarded-client.ts";
import type { Guard } from "./guarded-client.ts";
import type { PgClient, PgPool, PgResult, PgStatement } from "./pg-client.ts";
import { sqlstateOf } from "./sqlstate.ts";

/** The client type of a pool, in spite of the overloads of `Pool.connect`. */
export type ClientOf<P> = P extends { connect: { (): Promise<infer C>; (...given: infer _A): unknown } }
  ? C
  : P extends { connect(): Promise<infer C> }
    ? C
    : never;

/** Settings of {@link fromPg}. */
export interface FromPgOptions {
  /**
   * The schema of idemkit's tables.
   * @defaultValue "idemkit"
   */
  readonly schema?: string;
  /**
   * Whether statements are prepared under names. Turn it off behind a transaction-pooling proxy that does not track
   * prepared statements (PgBouncer before 1.21, or with `max_prepared_statements = 0`).
   * @defaultValue true
   */
  readonly preparedStatements?: boolean;
  /**
   * Whether a commit with events wakes the relays: one NOTIFY after it, at most a hundred a second for each process and
   * never inside your transaction. Turn it off where every relay polls.
   * @defaultValue true
   */
  readonly notify?: boolean;
}

/**
 * A database on a pool of `pg`. Give the pool `pipeline: true` and each flight is one round trip; without it the same
 * statements go one after the other.
 * @throws IdemkitError `connection_timeout_missing`: a handler that asks the pool for a second connection while all are
 * in transactions would hang for ever; `option_invalid`.
 */
export function fromPg<P extends PgPool>(
  pool: P,
  options: FromPgOptions = {},
): PostgresDatabase<ClientOf<P>> {
  if (typeof pool?.connect !== "function") throw invalid("pool", "must be a Pool of pg: new Pool({ … })");
  checkNames("fromPg", options, ["schema", "preparedStatements", "notify"]);
  const timeout = pool.options?.connectionTimeoutMillis;
  if (pool.options !== undefined && !(typeof timeout === "number" && timeout > 0)) {
    throw new IdemkitError("connection_timeout_missing", { details: { at: "connectionTimeoutMillis" } });
  }
  return postgresDatabase(pgConnections(pool, options.preparedStatements ?? true), options.schema, {
    notify: options.notify,
  });
}

function pgConnections<P extends PgPool>(pool: P, prepared: boolean): Connections<ClientOf<P>> {
  const statement = (call: Call): PgStatement => statementOf(call, prepared);
  return {
    query: async (call) => {
      const { session, run } = pgSession(await connected(pool), statement);
      try {
        const result = await run(call);
        session.giveBack();
        return result;
      } catch (error) {
        // Without the server's answer the statement may still be running: its connection is not for others.
        session.giveBack(
          sqlstateOf(error) === undefined ? new Error("no answer", { cause: error }) : undefined,
        );
        throw error;
      }
    },
    reserve: async () => {
      const { session, run } = pgSession(await connected(pool), statement);
      return {
        get broken() {
          return Boolean(session.broken);
        },
        run,
        release: session.giveBack,
      };
    },
    begin: async (first, isolation) => {
      const client = await connected(pool);
      const { session } = pgSession<ClientOf<P>>(client, statement);
      try {
        const opening = [beginText(isolation), statement(first)];
        const [, result] = await inOneFlight(inOnePacket(client, opening));
        if (result === undefined) throw new IdemkitError("idempotency_unavailable", { detail: "no answer" });
        return { session, first: resultOf(result) };
      } catch (error) {
        await session.rollback();
        throw error;
      }
    },
  };
}

function statementOf({ name, text, values }: Call, prepared: boolean): PgStatement {
  if (values === undefined) return text;
  const given = values as unknown[]; // which pg only reads
  return prepared && name !== undefined ? { name, text, values: given } : { text, values: given };
}

async function connected(pool: PgPool): Promise<PgClient> {
  try {
    return await pool.connect();
  } catch (cause) {
    throw new IdemkitError("idempotency_unavailable", { cause });
  }
}

function beginText(isolation: Isolation | undefined): string {
  return isolation === undefined ? "begin" : `begin isolation level ${isolation}`;
}

function resultOf({ rows, rowCount }: PgResult): Result {
  return { rows, count: rowCount ?? 0 };
}

/**
 * Waits for all, then throws the first error in the order of sending: a later statement fails only because an earlier
 * one did, and its "current transaction is aborted" says nothing.
 */
async function inOneFlight(sent: readonly Promise<PgResult>[]): Promise<readonly PgResult[]> {
  // Listened to at once: one that fails before its turn comes is nobody's unhandled rejection.
  for (const later of sent.slice(1)) later.catch(() => {});
  const results: PgResult[] = [];
  let failure: { readonly error: unknown } | undefined;
  for (const each of sent) {
    try {
      results.push(await each);
    } catch (error) {
      failure ??= { error };
    }
  }
  if (failure !== undefined) throw told(failure.error);
  return results;
}

/** Holds the socket's writes back while statements are sent: each packet of its own wakes the server up once more. */
function inOnePacket(client: PgClient, statements: readonly PgStatement[]): readonly Promise<PgResult>[] {
  const stream = client.connection?.stream;
  stream?.cork?.();
  try {
    return statements.map((each) => client.query(each));
  } finally {
    stream?.uncork?.();
  }
}

interface PgSession<Tx> {
  readonly session: Session<Tx> & {
    /** Gives a connection back that has no transaction open, or with an error throws it away. */
    giveBack(error?: Error): void;
  };
  run(call: Call): Promise<Result>;
}

function pgSession<Tx>(client: PgClient, statement: (call: Call) => PgStatement): PgSession<Tx> {
  const guard: Guard = { closed: false };
  let released = false;
  // Without a listener an `error` of a connection that dies between two statements ends the process.
  const onError = (error: Error): void => {
    session.broken ??= error;
  };
  client.on("error", onError);

  const run = async (call: Call): Promise<Result> => resultOf(await answered(client.query(statement(call))));
  const release = (error?: Error): void => {
    if (released) return;
    released = true;
    client.removeListener("error", onError);
    client.release(session.broken ?? error ?? false);
  };
  const session: PgSession<Tx>["session"] & { broken: Error | undefined } = {
    // The pool's own client type, of which PgClient is the part we call.
    tx: guardedClient(client, guard) as unknown as Tx,
    giveBack: release,
    broken: undefined,
    run: async (call) => {
      // What a handler began and nobody awaited may come back when the client is another transaction's.
      if (guard.closed) throw new IdemkitError("transaction_closed");
      return run(call);
    },
    commit: async (...calls) => {
      guard.closed = true;
      try {
        await commit(client, calls.map(statement));
        release();
      } catch (error) {
        release(await endAborted(client, onError));
        throw error;
      }
    },
    rollback: async () => {
      guard.closed = true;
      if (!released) release(await endAborted(client, onError));
    },
  };
  guard.session = session;
  return { session, run };
}

/** Refuses to send anything over a transaction that is not open and sound. */
async function commit(client: PgClient, statements: readonly PgStatement[]): Promise<void> {
  const status = client.getTransactionStatus?.();
  if (status === "E") throw new IdemkitError("transaction_aborted");
  if (status === "I") throw new IdemkitError("transaction_ended");
  let results: readonly PgResult[];
  try {
    results = await flown(client, [...statements, "commit"]);
  } catch (error) {
    throw sqlstateOf(error) === "25P02" ? unheard(error) : error;
  }
  // A COMMIT of a failed transaction "succeeds" with the tag ROLLBACK.
  if (results.at(-1)?.command !== "COMMIT") throw new IdemkitError("transaction_aborted");
}

/**
 * COMMIT goes out behind the statements without waiting only where the driver pipelines: the server then refuses to commit
 * what failed. A driver that waits for each answer gets it after them, for no round trip more, and so commits nothing
 * when a statement failed before it was sent.
 */
function flown(client: PgClient, statements: readonly PgStatement[]): Promise<readonly PgResult[]> {
  return client.pipeline === true
    ? inOneFlight(inOnePacket(client, statements))
    : oneByOne(client, statements);
}

async function oneByOne(client: PgClient, statements: readonly PgStatement[]): Promise<readonly PgResult[]> {
  const results: PgResult[] = [];
  for (const each of statements) results.push(await answered(client.query(each)));
  return results;
}

/** A statement that the handler did not await may fail only now; its error is the handler's to see, not this one's. */
function unheard(cause: unknown): IdemkitError {
  return new IdemkitError("transaction_aborted", { cause });
}

async function answered(sent: Promise<PgResult>): Promise<PgResult> {
  try {
    return await sent;
  } catch (cause) {
    throw told(cause);
  }
}

/** An error without an SQLSTATE is not the server's answer: the connection is gone, whatever the driver calls it. */
function told(cause: unknown): unknown {
  return sqlstateOf(cause) === undefined ? new IdemkitError("idempotency_unavailable", { cause }) : cause;
}

/** How long a connection may take to roll back before it is thrown away, and the server left to notice. */
const rollbackTimeoutMs = 1000;

/** @param onLost - told when the server did not answer to the rollback: the connection was gone before it */
async function endAborted(client: PgClient, onLost: (error: Error) => void): Promise<Error | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Error>((resolve) => {
    timer = setTimeout(() => resolve(new Error("rollback timed out")), rollbackTimeoutMs);
  });
  const rolledBack = client.query("rollback").then(
    () => undefined,
    (cause: unknown) => {
      const error = cause instanceof Error ? cause : new Error(String(cause));
      onLost(error);
      return error;
    },
  );
  const error = await Promise.race([rolledBack, late]);
  clearTimeout(timer);
  return error;
}
