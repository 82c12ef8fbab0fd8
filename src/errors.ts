/**
 * The one catalogue of errors. A code is never renamed and a retired one is never used again; compare errors by
 * `code`, never by message. Transport numbers (HTTP status) live in `http/status.ts` alone.
 */

interface CatalogueEntry {
  /** Whether the same call, with the same key, may succeed later. */
  readonly retryable: boolean;
  /** What happened and what to do, without payloads and without whole keys. */
  readonly message: string;
}

/** Every code with its default message; `docs/errors.md` has a section of the same name for each. */
export const errorCatalogue = {
  idempotency_key_missing: {
    retryable: false,
    message: "this operation needs an Idempotency-Key header: send one key for each business operation",
  },
  idempotency_key_malformed: {
    retryable: false,
    message:
      "the Idempotency-Key must be one header of 1 to 255 printable ASCII characters, bare or as a quoted string",
  },
  idempotency_key_reused: {
    retryable: false,
    message:
      "this key was used with another command: send the first command again, or use a new key for a new operation",
  },
  operation_in_progress: {
    retryable: true,
    message: "the operation with this key is running: repeat the request with the same key",
  },
  operation_uncertain: {
    retryable: false,
    message:
      "the outcome of the operation with this key is not known yet: do not repeat it under another key",
  },
  operation_refused: {
    retryable: false,
    message: "the operation was refused, and the refusal is stored: read `refusal` of the error's details",
  },
  idempotency_unavailable: {
    retryable: true,
    message:
      "the database could not be reached or kept refusing the transaction: repeat the request with the same key",
  },
  handler_timed_out: {
    retryable: true,
    message:
      "the handler did not finish in handlerTimeoutMs and was rolled back: repeat the request with the same key",
  },
  command_number_unsafe: {
    retryable: false,
    message: "the command holds a number that JavaScript cannot represent exactly: send it as a string",
  },
  command_too_deep: {
    retryable: false,
    message: "the command is nested more than 100 levels deep: flatten it",
  },
  command_not_json: {
    retryable: false,
    message: "the command is not JSON: give plain values, or bytes as a Uint8Array",
  },
  command_body_unread: {
    retryable: false,
    message:
      "the request has a body that no parser has read: install the parser for its content type before the route",
  },
  command_too_large: {
    retryable: false,
    message: "the request body is larger than maxRequestBytes: send less, or raise the option",
  },
  scope_missing: {
    retryable: false,
    message: 'the scope is empty or not a string: return the principal, or say scope: "shared"',
  },
  option_invalid: { retryable: false, message: "an option is unknown or out of range" },
  retention_out_of_range: {
    retryable: false,
    message:
      "retentionHours must lie between 24 and 72: say allowUnsafeRetention: true where another value is meant",
  },
  operation_duplicate: {
    retryable: false,
    message: "two operations have one name: the name is part of a key's identity, so give each its own",
  },
  method_unprotectable: {
    retryable: false,
    message: "only POST, PUT, PATCH and DELETE can be protected: move the operation to one of them",
  },
  response_too_large: {
    retryable: false,
    message: "the response is larger than maxResponseBytes and could not be stored: nothing was committed",
  },
  response_unsupported: {
    retryable: false,
    message: "the handler used a response feature that cannot be stored and replayed: nothing was committed",
  },
  value_not_json: {
    retryable: false,
    message: "the handler's value cannot be stored as JSON: return plain values, or give a codec",
  },
  transaction_closed: {
    retryable: false,
    message: "the transaction of this operation has ended: await every statement before the handler returns",
  },
  transaction_control_refused: {
    retryable: false,
    message: "idemkit begins and ends the transaction: use savepoint(tx, work) for a part that may fail",
  },
  transaction_aborted: {
    retryable: false,
    message:
      "a statement of the handler failed and its error was swallowed: let it through, or use savepoint(tx, work)",
  },
  transaction_ended: {
    retryable: false,
    message:
      "the handler ended the transaction itself, so its record could not be committed with its effects",
  },
  connection_timeout_missing: {
    retryable: false,
    message:
      "the pool has no connectionTimeoutMillis: set one, or a handler that waits for a second connection hangs",
  },
  schema_missing: {
    retryable: false,
    message: "idemkit's tables are missing: call migrate(database) or run `npx idemkit migrate`",
  },
  schema_newer: {
    retryable: false,
    message:
      "idemkit's tables were migrated by a newer, incompatible version: deploy that version of idemkit",
  },
  fingerprint_version_unknown: {
    retryable: true,
    message:
      "the record was written by a newer version of idemkit: finish the deployment, then repeat with the same key",
  },
} as const;

/** A code of {@link errorCatalogue}. */
export type ErrorCode = keyof typeof errorCatalogue;

/** What an {@link IdemkitError} tells beside its code. Never a payload, a whole key or personal data. */
export interface ErrorDetails {
  /** One operation instance, where there is one. */
  readonly operationId?: string;
  /** The option, header or path inside the command that is at fault. */
  readonly at?: string;
  /** The value given to `refuse`, for `operation_refused`. */
  readonly refusal?: unknown;
}

/** Settings of one error. */
export interface ErrorOptions {
  /** Appended to the catalogue's message. */
  readonly detail?: string;
  readonly details?: ErrorDetails;
  readonly cause?: unknown;
}

/** The one error class of idemkit. */
export class IdemkitError extends Error {
  override readonly name = "IdemkitError";
  readonly code: ErrorCode;
  readonly retryable: boolean;
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, options: ErrorOptions = {}) {
    const { message, retryable }: CatalogueEntry = errorCatalogue[code];
    const cause = options.cause === undefined ? undefined : { cause: options.cause };
    super(options.detail === undefined ? message : `${message} (${options.detail})`, cause);
    this.code = code;
    this.retryable = retryable;
    this.details = options.details ?? {};
  }
}

/** Whether `error` is idemkit's, and of this code where one is given; works across copies of the package. */
export function isIdemkitError(error: unknown, code?: ErrorCode): error is IdemkitError {
  if (!(error instanceof Error) || error.name !== "IdemkitError" || !("code" in error)) return false;
  return code === undefined ? String(error.code) in errorCatalogue : error.code === code;
}
