import type { CallOf, Completion } from "../core/execution.ts";
import { checkInteger } from "../internal/options.ts";
import type { PostgresDatabase } from "../postgres/connections.ts";
import type { Effect } from "./effect.ts";
import type { Phases } from "./phases.ts";

/** What a run of a handler of the external mode is given: no transaction is open in it. */
export interface EffectsContext<Tx> extends Phases<Tx> {
  readonly key: string;
  readonly operationId: string;
  /** 1 for the first attempt; more where an earlier one died or was given back. */
  readonly attempt: number;
  readonly signal: AbortSignal;
  readonly effect: Effect;
}

/** What a handler of the external mode is given last. */
export interface OnceWithEffects<Tx> extends EffectsContext<Tx> {
  /** Marks the answer as not final: it is not stored, and the next call goes on from the ledger. */
  notFinal(): void;
}

/** How an attempt owns its operation. */
export interface LeaseOptions {
  /**
   * How long an attempt owns its operation without a sign of life: the time after which a crash is noticed.
   * @defaultValue 30_000
   */
  readonly leaseMs?: number;
  /**
   * How often a living attempt renews its lease; at most a third of `leaseMs`.
   * @defaultValue a third of `leaseMs`
   */
  readonly heartbeatMs?: number;
}

/** @throws IdemkitError `option_invalid`: a lease must outlive some missed beats. */
export function leaseSettingsOf(options: LeaseOptions & { readonly operation: string }): LeaseSettings {
  const { operation, leaseMs = 30_000, heartbeatMs = Math.floor(leaseMs / 3) } = options;
  checkInteger(`${operation}.leaseMs`, leaseMs, 300, 3_600_000);
  checkInteger(`${operation}.heartbeatMs`, heartbeatMs, 50, Math.floor(leaseMs / 3));
  return { leaseMs, heartbeatMs };
}

/** Bounds of an attempt of the external mode. */
export interface LeaseSettings {
  /** How long an attempt owns its operation without a sign of life. */
  readonly leaseMs: number;
  readonly heartbeatMs: number;
}

/** One call of an operation in the external mode, ready to be executed. */
export interface EffectsExecution<Tx> extends CallOf<Tx> {
  readonly database: PostgresDatabase<Tx>;
  readonly lease: LeaseSettings;
  /** What the rescuer gives to the handler after a crash; without it only a repeat of the call goes on. */
  readonly command: Uint8Array | null;
  /** Runs the handler; may be called more than once, with what was done before remembered. */
  run(context: EffectsContext<Tx>): Promise<Completion>;
  /** Turns a thrown error into an answer; without it the error is thrown on. */
  render?(error: unknown): Promise<Completion>;
  /** Whether `run` may be called again; default always. */
  canRunAgain?(): boolean;
}
