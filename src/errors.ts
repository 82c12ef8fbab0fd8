import { errorCatalogue } from "./error-catalogue.ts";
import type { CatalogueEntry } from "./error-catalogue.ts";

export { errorCatalogue } from "./error-catalogue.ts";

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
