import type { Once } from "../core/run-once.ts";
import { leaseSettingsOf } from "../effects/execution.ts";
import type { LeaseOptions, LeaseSettings, OnceWithEffects } from "../effects/execution.ts";
import type { ExecutionSettings } from "../core/execution.ts";
import { checkDatabase, operationOptionNames, registerOperation, settingsOf } from "../core/operation.ts";
import type { OperationOptions } from "../core/operation.ts";
import type { OutcomeName } from "../core/outcome.ts";
import type { Database, Disposition } from "../core/ports.ts";
import { checkFunction, checkInteger, checkNames, checkObject, invalid } from "../internal/options.ts";
import { checkPostgresDatabase } from "../postgres/database.ts";
import type { GivenCommand } from "./command.ts";
import { storedHeaders } from "./headers.ts";
import { mismatchStatuses } from "./status.ts";
import type { MismatchStatus } from "./status.ts";

/** What became of one request to a protected route, for metrics and logs. No payloads and no keys. */
export interface OutcomeEvent {
  readonly operation: string;
  /** Absent where idemkit could not decide it: the store was unavailable, or the request was refused before it. */
  readonly outcome?: OutcomeName;
  /** What became of the handler's writes, for `executed` and `replayed`. */
  readonly disposition?: Disposition;
  readonly operationId?: string;
  /** From the call to the answer, in milliseconds. */
  readonly durationMs: number;
  /** The error that idemkit itself answered with or threw on: an IdemkitError, or a defect that nobody else would log. */
  readonly error?: unknown;
}

/** Settings of a binding, shared by its routes. */
export interface IdempotencyOptions<Tx, Request> {
  readonly database: Database<Tx>;
  /**
   * Whose keys they are: the authenticated principal of a request. `"shared"` makes keys common to all callers, and
   * must be meant: a caller who guesses another's key gets the other's answer.
   */
  readonly scope: ((request: Request) => string) | "shared";
  /**
   * The status of the answer when a key comes with another command: the seeds' 409, or 422 as in the IETF draft.
   * @defaultValue 409
   */
  readonly mismatchStatus?: MismatchStatus;
  /**
   * Told of every request to a protected route; what it throws is ignored.
   */
  readonly onOutcome?: (event: OutcomeEvent) => void;
}

/** Settings of a protected route. */
export interface RouteOptions<Request> extends OperationOptions {
  /**
   * Whether a request without a key is refused (400), or runs unprotected: in a transaction, but unrecorded.
   * @defaultValue "required"
   */
  readonly key?: "required" | "optional";
  /**
   * What makes two requests the same command, where that isn't the parsed body: multipart, streams, exact bytes.
   * @defaultValue the body as the handler sees it
   */
  readonly command?: (request: Request) => GivenCommand | Promise<GivenCommand>;
  /**
   * The largest response that is buffered and stored. A larger one is a 500 at the first try, with nothing committed.
   * @defaultValue 1_048_576
   */
  readonly maxResponseBytes?: number;
  /** More headers to store and replay; never cookies, credentials, dates, request ids or CORS. */
  readonly storeHeaders?: readonly string[];
}

/** The settings of a route whose body the binding itself reads. */
export interface ReadingRouteOptions<Request> extends RouteOptions<Request> {
  /**
   * The largest request body; a larger one is answered 413 `command_too_large`.
   * @defaultValue 1_048_576
   */
  readonly maxRequestBytes?: number;
}

/** What a handler of a route with `key: "optional"` gets: without a key it runs unprotected. */
export type OptionalOnce<Tx> = Omit<Once<Tx>, "key"> & {
  /** The caller's key, or `undefined` where the request had none and runs unprotected. */
  readonly key: string | undefined;
};

/** Settings of a protected route whose handler calls other systems. */
export type EffectsRouteOptions<Options> = Omit<Options, "key"> & LeaseOptions;

/** What any handler may get. */
export type HandlerOnce<Tx> = OptionalOnce<Tx> | OnceWithEffects<Tx>;

/** A route with its settings checked and resolved. */
export interface Route<Tx> {
  readonly operation: string;
  readonly database: Database<Tx>;
  readonly settings: ExecutionSettings;
  readonly keyOptional: boolean;
  /** There where the handler calls other systems: the external mode. */
  readonly lease?: LeaseSettings;
  readonly mismatchStatus: MismatchStatus;
  readonly maxResponseBytes: number;
  readonly maxRequestBytes: number;
  /** Names of the headers that are stored. */
  readonly stored: ReadonlySet<string>;
  readonly onOutcome: ((event: OutcomeEvent) => void) | undefined;
}

const routeOptionNames = [...operationOptionNames, "key", "command", "maxResponseBytes", "storeHeaders"];
const bindingOptionNames = ["database", "scope", "mismatchStatus", "onOutcome"];
const defaultBytes = 1_048_576;
const maxBytes = 1_073_741_824;

/**
 * Checks the settings of a binding.
 * @throws IdemkitError `option_invalid`.
 */
export function checkBinding<Tx, Request>(
  options: IdempotencyOptions<Tx, Request>,
  more: readonly string[] = [],
): void {
  checkNames("idempotency", options, [...bindingOptionNames, ...more]);
  const { database, scope, mismatchStatus = 409, onOutcome } = options;
  checkDatabase(database);
  if (typeof scope !== "function" && scope !== "shared") {
    throw invalid("scope", 'must be a function of the request that returns its principal, or "shared"');
  }
  if (!mismatchStatuses.includes(mismatchStatus)) throw invalid("mismatchStatus", "must be 409 or 422");
  if (onOutcome !== undefined) checkFunction("onOutcome", onOutcome);
}

/** What a binding has beside the options that all of them have. */
export interface OwnOfBinding {
  readonly options?: readonly string[];
  /** The route's handler, where the binding is given one. */
  readonly handler?: unknown;
}

/**
 * Checks a route's settings, resolves their defaults and enters its operation.
 * @throws IdemkitError `option_invalid`, `retention_out_of_range`, `operation_duplicate`.
 */
export function routeOf<Tx, Request>(
  binding: IdempotencyOptions<Tx, Request>,
  options: ReadingRouteOptions<Request>,
  own: OwnOfBinding = {},
): Route<Tx> {
  checkObject("the route's options", options);
  const { operation, key = "required", command } = options;
  checkNames(operation, options, [...routeOptionNames, ...(own.options ?? [])]);
  const settings = settingsOf(options);
  if (key !== "required" && key !== "optional") {
    throw invalid(`${operation}.key`, 'must be "required" or "optional"');
  }
  if (command !== undefined) checkFunction(`${operation}.command`, command);
  if ("handler" in own) checkFunction(`${operation}.handler`, own.handler);
  const bytes = (name: "maxResponseBytes" | "maxRequestBytes"): number =>
    checkInteger(`${operation}.${name}`, options[name] ?? defaultBytes, 0, maxBytes);
  const route = {
    operation,
    database: binding.database,
    settings,
    keyOptional: key === "optional",
    mismatchStatus: binding.mismatchStatus ?? 409,
    maxResponseBytes: bytes("maxResponseBytes"),
    maxRequestBytes: bytes("maxRequestBytes"),
    stored: storedHeaders(`${operation}.storeHeaders`, options.storeHeaders),
    onOutcome: binding.onOutcome,
  };
  registerOperation(binding.database, operation);
  return route;
}

/** Calls to other systems take longer than statements. */
const effectsTimeoutMs = 120_000;

/**
 * The same for a route whose handler calls other systems; its key is always required.
 * @throws IdemkitError as {@link routeOf}.
 */
export function effectsRouteOf<Tx, Request>(
  binding: IdempotencyOptions<Tx, Request>,
  options: EffectsRouteOptions<ReadingRouteOptions<Request>>,
  own: OwnOfBinding = {},
): Route<Tx> {
  checkObject("the route's options", options);
  const { leaseMs: _lease, heartbeatMs: _heartbeat, ...rest } = options;
  if ("key" in rest) {
    throw invalid(`${options.operation}.key`, "is always required where other systems are called");
  }
  checkPostgresDatabase(binding.database);
  const lease = leaseSettingsOf(options);
  return { ...routeOf(binding, { handlerTimeoutMs: effectsTimeoutMs, ...rest }, own), lease };
}

/** What a `scope` option says of a request; checked before any I/O. */
export function scopeOf<Request>(scope: ((request: Request) => string) | "shared", request: Request): string {
  return scope === "shared" ? scope : scope(request);
}
