import { STATUS_CODES } from "node:http";

import { isIdemkitError } from "../errors.ts";
import type { ErrorCode, IdemkitError } from "../errors.ts";
import { internalError, statusOf } from "./status.ts";

/** What a client should do, so that it need not read prose. */
export type RetryAdvice = "same-key" | "new-key" | "stop";

/** RFC 9457 problem details, with idemkit's members. */
export interface ProblemBody {
  /** `urn:idemkit:error:` and the code, whose section of `docs/errors.md` explains it. */
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail?: string;
  readonly code?: ErrorCode;
  /** One operation instance, where there is one. */
  readonly operation_id?: string;
  readonly retry?: RetryAdvice;
  /** The path inside the command, or the option, that is at fault. */
  readonly at?: string;
}

/** An answer ready to be sent by any framework; `body` is to be written as JSON. */
export interface Problem {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: ProblemBody;
}

/** Fixed; clients add their own jitter. */
const retryAfterSeconds = "1";
const contentType = "application/problem+json";

/** Errors that the client can mend in its request, and then send it as a new operation. */
const mendable: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "idempotency_key_missing",
  "idempotency_key_malformed",
  "idempotency_key_reused",
  "command_number_unsafe",
  "command_too_deep",
  "command_not_json",
  "command_too_large",
]);

/**
 * Turns an error into an HTTP answer: problem details with `code`, `retry` and `operation_id` for an error of the
 * catalogue, a 500 without details for anything else.
 */
export function problemOf(error: unknown): Problem {
  return isIdemkitError(error) ? ofCatalogue(error, statusOf(error.code)) : unknownFailure();
}

/** The same with a status of the caller's choice, for a mismatch. */
export function problemWithStatus(error: IdemkitError, status: number): Problem {
  return ofCatalogue(error, status);
}

function ofCatalogue(error: IdemkitError, status: number): Problem {
  const { code, message, retryable, details } = error;
  const { operationId, at } = details;
  return {
    status,
    headers: { "content-type": contentType, ...(retryable ? { "retry-after": retryAfterSeconds } : {}) },
    body: {
      type: `urn:idemkit:error:${code}`,
      title: titleOf(status),
      status,
      detail: message,
      code,
      ...(operationId === undefined ? {} : { operation_id: operationId }),
      retry: adviceOf(error),
      ...(at === undefined ? {} : { at }),
    },
  };
}

function adviceOf({ code, retryable }: IdemkitError): RetryAdvice {
  if (retryable) return "same-key";
  return mendable.has(code) ? "new-key" : "stop";
}

/** What went wrong stays in the server's log: it may hold anything. */
function unknownFailure(): Problem {
  const status = internalError;
  return {
    status,
    headers: { "content-type": contentType },
    body: { type: "about:blank", title: titleOf(status), status },
  };
}

function titleOf(status: number): string {
  return STATUS_CODES[status] ?? "Error";
}
