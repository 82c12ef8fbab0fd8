import type { Runtime } from "../internal/runtime.ts";
import type {
  Answer,
  Claimed,
  Database,
  Identity,
  Isolation,
  OperationRecord,
  StoredDisposition,
  Unclaimed,
} from "./ports.ts";

/** Bounds of one execution, resolved: every unit is milliseconds. */
export interface ExecutionSettings {
  readonly retentionMs: number;
  /** Bounds one run of the handler. */
  readonly handlerTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly lockTimeoutMs: number;
  readonly isolation?: Isolation | undefined;
  /** How long a duplicate waits for the running attempt before it is told "in progress". */
  readonly waitMs: number;
  /** How many duplicates of one identity may wait in this process. */
  readonly maxWaiting: number;
}

/** What a run of the handler is given. */
export interface RunContext<Tx> {
  readonly tx: Tx;
  readonly key: string;
  readonly operationId: string;
  /** Made when it is first read: pass it on by `sharingSignal`, not by a copy. */
  readonly signal: AbortSignal;
}

/** What a run of the handler came to. */
export type Completion =
  | { readonly disposition: StoredDisposition; readonly answer: Answer }
  | { readonly disposition: "discard" };

/** One call of an operation, whichever mode executes it. */
export interface CallOf<Tx> {
  readonly database: Database<Tx>;
  readonly identity: Identity;
  readonly fingerprint: Uint8Array;
  readonly settings: ExecutionSettings;
  readonly runtime: Runtime;
}

/** How a mode of execution claims an operation, and runs what it has claimed. */
export interface Protocol<A> {
  /** One read, for a call that is likely a repeat. */
  find(): Promise<Unclaimed | undefined>;
  claim(operationId: string): Promise<Claimed<A>>;
  run(attempt: A, operationId: string): Promise<Executed>;
}

/** One call of an operation in the atomic mode, ready to be executed. */
export interface Execution<Tx> extends CallOf<Tx> {
  /** Runs the handler; may be called more than once, each time on a fresh transaction. */
  run(context: RunContext<Tx>): Promise<Completion>;
  /** Turns a thrown error into an answer; without it the error is thrown on. Called after the roll-back. */
  render?(error: unknown): Promise<Completion>;
  /** Whether `run` may be called again; default always. */
  canRunAgain?(): boolean;
}

/** What an execution came to; a discarded answer stays with whoever rendered it. */
export type Executed =
  | {
      readonly outcome: "executed";
      readonly disposition: StoredDisposition;
      readonly record: OperationRecord;
    }
  | { readonly outcome: "executed"; readonly disposition: "discard"; readonly operationId: string }
  | { readonly outcome: "replayed"; readonly record: OperationRecord }
  | { readonly outcome: "in-progress" }
  | { readonly outcome: "mismatch" }
  | { readonly outcome: "uncertain"; readonly operationId: string };
