/** What the core needs of a database. Adapters are plain functions (`fromPg`); this is a seam, not a base class. */

/** Which operation instance: two requests are the same operation when all three are equal. */
export interface Identity {
  /** Whose key it is: the principal, or `"shared"` said on purpose. */
  readonly scope: string;
  /** The operation's name, such as `charge`. */
  readonly operation: string;
  /** The caller's key. */
  readonly key: string;
}

/** What became of a finished operation: `keep` committed its writes, `refuse` rolled them back; both are stored. */
export type StoredDisposition = "keep" | "refuse";

/** What becomes of one run of a handler; a discarded run leaves nothing behind. */
export type Disposition = StoredDisposition | "discard";

/** A final answer as it is stored: bytes, and where it came over HTTP its status and headers. */
export interface Answer {
  readonly status: number | null;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Uint8Array;
}

/** A row of `idempotency_record`. */
export interface OperationRecord extends Answer {
  readonly operationId: string;
  /** A version byte and a SHA-256, see `fingerprint.ts`. */
  readonly fingerprint: Uint8Array;
  readonly disposition: StoredDisposition;
}

/** Transaction isolation, as PostgreSQL names it. */
export type Isolation = "read committed" | "repeatable read" | "serializable";

/** Bounds of one attempt. */
export interface AttemptSettings {
  readonly operationId: string;
  readonly retentionMs: number;
  /** How long the transaction may sit idle before the server ends it: frees the key of a paused or cut-off process. */
  readonly idleTimeoutMs: number;
  /** How long a statement may wait for a row lock, unless the session sets `lock_timeout` itself. */
  readonly lockTimeoutMs: number;
  readonly isolation?: Isolation | undefined;
}

/** The one attempt that holds the operation: its transaction, open. */
export interface Attempt<Tx> {
  /** A façade over the live client, closed when the attempt ends. */
  readonly tx: Tx;
  /** Why its connection is gone, where it is: before `finish` was called, nothing of it can have been committed. */
  lost(): Error | undefined;
  /** Whether it was the database that failed the attempt with this error (connection lost, lock wait cut short). */
  failedBy(error: unknown): boolean;
  /**
   * Inserts the record, asserting that none is live, and commits, in one flight.
   * `superseded`: another attempt's record appeared meanwhile and nothing of this one was committed.
   */
  finish(record: OperationRecord): Promise<"committed" | "superseded">;
  /** Rolls back and gives the connection back; never throws. */
  rollback(): Promise<void>;
}

/** The answer to a claim that did not get the operation; no connection is held. */
export type Unclaimed =
  | { readonly claim: "found"; readonly record: OperationRecord }
  /** Another process runs it; the running command's fingerprint is there where the mode can see it. */
  | { readonly claim: "locked"; readonly fingerprint?: Uint8Array }
  /** Nobody knows whether a call to another system took effect. */
  | { readonly claim: "uncertain"; readonly operationId: string; readonly fingerprint: Uint8Array };

/** The answer to a claim, `A` being what the one attempt that got it goes on with. */
export type Claimed<A> = { readonly claim: "claimed"; readonly attempt: A } | Unclaimed;

/** The answer to a claim of the atomic mode. */
export type Claim<Tx> = Claimed<Attempt<Tx>>;

/** The statements of PROTOCOLS: look-up, claim with finish, and a refusal in a transaction of its own. */
export interface RecordStore<Tx> {
  /** One autocommit read of a live record. */
  find(identity: Identity): Promise<Unclaimed | undefined>;
  claim(identity: Identity, settings: AttemptSettings): Promise<Claim<Tx>>;
  refuse(
    identity: Identity,
    record: OperationRecord,
    retentionMs: number,
  ): Promise<"committed" | "superseded">;
}

/** A database that commits records in the same transaction as their effects; `Tx` is the caller's own client type. */
export interface Database<Tx> {
  readonly records: RecordStore<Tx>;
  /** The same transactions without records, for a call that has no key where keys are optional. */
  readonly unrecorded: RecordStore<Tx>;
  /** Sorts an error of this database; see `classify`. */
  classify(error: unknown): ErrorClass;
}

/**
 * What to do about a database error: run the transaction again (`retry`), tell the caller to come back
 * (`unavailable`), handle a constraint (`conflict`), or give up (`fatal`).
 */
export type ErrorClass = "retry" | "unavailable" | "conflict" | "fatal";
