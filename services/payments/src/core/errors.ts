/** What kind of fault an error is; the HTTP adapter gives each kind its status. */
export type ErrorKind =
  | "validation"
  | "unauthenticated"
  | "forbidden"
  | "not-found"
  | "conflict"
  | "unprocessable"
  | "unavailable";

/** One fault of one input, named the way the client wrote it: `items[0].unitPrice`, `Idempotency-Key`. */
export interface FieldFault {
  readonly field: string;
  readonly message: string;
}

export interface ServiceErrorOptions {
  readonly kind: ErrorKind;
  /** Stable, machine-readable; clients compare by it. */
  readonly code: string;
  /** Shown to the client: never a payload, a token or another customer's data. */
  readonly message: string;
  /** The inputs at fault, where the error is about inputs. */
  readonly faults?: readonly FieldFault[];
  readonly cause?: unknown;
}

/** The one error of the service: everything it refuses on purpose. Any other throw is a defect and a 500. */
export class ServiceError extends Error {
  override readonly name = "ServiceError";
  readonly kind: ErrorKind;
  readonly code: string;
  readonly faults: readonly FieldFault[];

  constructor(options: ServiceErrorOptions) {
    super(options.message, options.cause === undefined ? undefined : { cause: options.cause });
    this.kind = options.kind;
    this.code = options.code;
    this.faults = options.faults ?? [];
  }
}

/** Input that can't be a command at all: malformed, out of range, unknown members. */
export const invalid = (field: string, message: string): ServiceError =>
  new ServiceError({
    kind: "validation",
    code: "validation_failed",
    message: `${field} ${message}`,
    faults: [{ field, message }],
  });

/** A well-formed command that contradicts what it refers to. */
export const unprocessable = (code: string, field: string, message: string): ServiceError =>
  new ServiceError({
    kind: "unprocessable",
    code,
    message: `${field} ${message}`,
    faults: [{ field, message }],
  });
