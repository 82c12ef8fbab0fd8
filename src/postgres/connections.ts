import type { Database, ErrorClass, Isolation } from "../core/ports.ts";

/** One statement on its way. */
export interface Call {
  /** Names the prepared statement, where the driver may prepare. */
  readonly name?: string;
  readonly text: string;
  readonly values?: readonly unknown[];
}

/** A row as the driver gives it: `bytea` is a Uint8Array, `json` is parsed, `bigint` is a string. */
export type Row = Readonly<Record<string, unknown>>;

/** What a statement did. */
export interface Result {
  readonly rows: readonly Row[];
  /** Rows changed; 0 where the statement changes none. */
  readonly count: number;
}

/** An open transaction on a connection of its own. */
export interface Session<Tx> {
  /** The caller's own client, guarded: it refuses transaction control, and everything once the session has ended. */
  readonly tx: Tx;
  /** Why the connection is gone, or `undefined` while it is there; what the rollback finds counts too. */
  readonly broken: Error | undefined;
  /**
   * One statement of idemkit's own.
   * @throws IdemkitError `transaction_closed` once the session is ending: the client may serve another request by then.
   */
  run(call: Call): Promise<Result>;
  /**
   * Closes `tx`, sends the calls and COMMIT in one flight, requires the command tag COMMIT, and gives the connection
   * back. After an error nothing is committed, unless the connection was lost behind COMMIT.
   * @throws the error of the first call that failed; IdemkitError `transaction_aborted`, `transaction_ended`.
   */
  commit(...calls: readonly Call[]): Promise<void>;
  /** Closes `tx`, rolls back and gives the connection back; never throws, and does nothing once the session has ended. */
  rollback(): Promise<void>;
}

/** A connection kept out of the pool, without a transaction: for what must not wait behind a busy pool. */
export interface Reserved {
  /** Whether the connection is known to be gone; what the rollback finds counts too. */
  readonly broken: boolean;
  /** One autocommit statement. */
  run(call: Call): Promise<Result>;
  /** Gives the connection back, or with an error throws it away; does nothing the second time. */
  release(error?: Error): void;
}

/**
 * The statement port: what idemkit needs of a PostgreSQL client. An adapter is a function that returns one
 * (`fromPg`); everything else is built on these members.
 */
export interface Connections<Tx> {
  /** One autocommit statement on any connection. */
  query(call: Call): Promise<Result>;
  /** Takes a connection for as long as the caller likes. */
  reserve(): Promise<Reserved>;
  /** Opens a transaction and runs its first statement in the same flight where the driver can. */
  begin(
    first: Call,
    isolation?: Isolation,
  ): Promise<{ readonly session: Session<Tx>; readonly first: Result }>;
}

/** A PostgreSQL database as every part of idemkit takes it. */
export interface PostgresDatabase<Tx> extends Database<Tx> {
  /** The schema of idemkit's tables. */
  readonly schema: string;
  /** Whether a commit with events wakes the relays by NOTIFY. */
  readonly notify: boolean;
  readonly connections: Connections<Tx>;
  classify(error: unknown): ErrorClass;
}
