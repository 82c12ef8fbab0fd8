import { IdemkitError } from "../errors.ts";
import { checkInteger, checkNames, invalid } from "../internal/options.ts";
import type { ExecutionSettings } from "./execution.ts";
import type { Isolation } from "./ports.ts";

const hourMs = 3_600_000;
/** R-DIST-IDEM-5: shorter and a client's retry on the next day charges twice; longer and the table grows without use. */
const retentionRange = { min: 24, max: 72 };
/** Ten years: what is meant as "for ever" must not overflow an interval at the first finish. */
const longestHours = 87_600;
const name = /^[a-z0-9]+(?:[-._:][a-z0-9]+)*$/;
const isolations: readonly Isolation[] = ["read committed", "repeatable read", "serializable"];

/** What a duplicate of a running operation does. */
export interface WhileRunning {
  /**
   * How long a duplicate waits for the running attempt, outside the pool, before it is told "in progress".
   * @defaultValue 0: at once
   */
  readonly waitMs?: number;
  /**
   * How many duplicates of one identity may wait in one process; more are told "in progress" at once.
   * @defaultValue 100
   */
  readonly maxWaiting?: number;
}

/** Settings of an operation, alike in every face. */
export interface OperationOptions {
  /** The operation's name, such as `charge`: part of a key's identity, so never renamed while records live. */
  readonly operation: string;
  /**
   * How long the answer is kept, in hours from 24 to 72 (R-DIST-IDEM-5).
   * @defaultValue 72
   */
  readonly retentionHours?: number;
  /**
   * Allows `retentionHours` outside 24–72. A shorter one lets a late retry take effect twice; `doctor` reports it.
   * @defaultValue false
   */
  readonly allowUnsafeRetention?: boolean;
  /**
   * Bounds one run of the handler, until its answer is complete; then it is rolled back.
   * @defaultValue 30_000
   */
  readonly handlerTimeoutMs?: number;
  /**
   * How long the transaction may sit idle between two statements before the server ends it. It bounds how long a paused
   * or cut-off process keeps its key, so keep it above the handler's longest pause and no higher than you can wait.
   * @defaultValue 10_000
   */
  readonly idleTimeoutMs?: number;
  /**
   * How long a statement may wait for a lock, where the session has no `lock_timeout` of its own.
   * @defaultValue 5_000
   */
  readonly lockTimeoutMs?: number;
  /** Isolation of the handler's transaction; without it the session's default. */
  readonly isolation?: Isolation;
  readonly whileRunning?: WhileRunning;
}

/** The names of {@link OperationOptions}, for the check of unknown options. */
export const operationOptionNames: readonly (keyof OperationOptions)[] = [
  "operation",
  "retentionHours",
  "allowUnsafeRetention",
  "handlerTimeoutMs",
  "idleTimeoutMs",
  "lockTimeoutMs",
  "isolation",
  "whileRunning",
];

/**
 * Checks an operation's options and resolves their defaults.
 * @throws IdemkitError `option_invalid`, `retention_out_of_range`.
 */
export function settingsOf(options: OperationOptions): ExecutionSettings {
  checkOperationName(options.operation);
  const where = options.operation;
  const { whileRunning = {}, isolation } = options;
  checkNames(`${where}.whileRunning`, whileRunning, ["waitMs", "maxWaiting"]);
  if (isolation !== undefined && !isolations.includes(isolation)) {
    throw invalid(`${where}.isolation`, `must be one of ${isolations.join(", ")}`);
  }
  return {
    retentionMs: retentionMsOf(options),
    handlerTimeoutMs: checkInteger(
      `${where}.handlerTimeoutMs`,
      options.handlerTimeoutMs ?? 30_000,
      1,
      3_600_000,
    ),
    idleTimeoutMs: checkInteger(`${where}.idleTimeoutMs`, options.idleTimeoutMs ?? 10_000, 100, 3_600_000),
    lockTimeoutMs: checkInteger(`${where}.lockTimeoutMs`, options.lockTimeoutMs ?? 5000, 1, 3_600_000),
    isolation,
    waitMs: checkInteger(`${where}.whileRunning.waitMs`, whileRunning.waitMs ?? 0, 0, 600_000),
    maxWaiting: checkInteger(`${where}.whileRunning.maxWaiting`, whileRunning.maxWaiting ?? 100, 1, 100_000),
  };
}

/** @throws IdemkitError `option_invalid` unless `database` is one of idemkit's. */
export function checkDatabase(
  database: { readonly records?: { readonly claim?: unknown } } | undefined,
): void {
  if (typeof database?.records?.claim !== "function") {
    throw invalid("database", "must be one, such as fromPg(pool)");
  }
}

function checkOperationName(operation: unknown): asserts operation is string {
  if (typeof operation === "string" && operation.length <= 100 && name.test(operation)) return;
  throw invalid(
    "operation",
    "must be a lower-case name such as charge or create-order, of at most 100 characters",
  );
}

function retentionMsOf({
  operation,
  retentionHours = 72,
  allowUnsafeRetention = false,
}: OperationOptions): number {
  if (typeof retentionHours !== "number" || !(retentionHours > 0 && retentionHours <= longestHours)) {
    const range = `a number of hours, at most ${longestHours}`;
    throw invalid(`${operation}.retentionHours`, `must be ${range}, not ${String(retentionHours)}`);
  }
  const within = retentionHours >= retentionRange.min && retentionHours <= retentionRange.max;
  if (within || allowUnsafeRetention) return retentionHours * hourMs;
  throw new IdemkitError("retention_out_of_range", {
    detail: `operation ${operation}: ${retentionHours}`,
    details: { at: `${operation}.retentionHours` },
  });
}

const registered = new WeakMap<object, Set<string>>();

/**
 * Enters the name of an operation declared at start-up.
 * @throws IdemkitError `operation_duplicate`: two operations of one name on one database would share their keys.
 */
export function registerOperation(database: object, operation: string): void {
  const names = registered.get(database) ?? new Set<string>();
  if (names.has(operation)) throw new IdemkitError("operation_duplicate", { detail: operation });
  registered.set(database, names.add(operation));
}
