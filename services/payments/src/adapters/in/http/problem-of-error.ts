import type { FastifyError } from "fastify";
import { classify, IdemkitError } from "idemkit";
import { problemOf } from "idemkit/http";
import { ServiceError } from "../../../core/errors.ts";
import { problem } from "./problem.ts";
import type { Problem } from "./problem.ts";
import { statusOfKind } from "./status.ts";
import { validationFault } from "./validation-fault.ts";

/** The answer to any throw of the service: one place, whatever route or hook it came from. */
export const problemOfError = (error: unknown): Problem => {
  if (error instanceof ServiceError) {
    return ofServiceError(error);
  }
  if (error instanceof IdemkitError) {
    return problemOf(error);
  }
  return ofFastifyError(error) ?? ofInfrastructure(error);
};

const ofServiceError = (error: ServiceError): Problem =>
  problem({
    status: statusOfKind[error.kind],
    code: error.code,
    detail: error.message,
    faults: error.faults,
    headers: headersOfKind[error.kind] ?? {},
  });

const headersOfKind: Readonly<Partial<Record<ServiceError["kind"], Readonly<Record<string, string>>>>> = {
  unauthenticated: { "www-authenticate": 'Bearer error="invalid_token"' },
  unavailable: { "retry-after": "1" },
};

/** What Fastify itself refuses before a handler runs: a failed schema, broken JSON, a body that is too large. */
const ofFastifyError = (error: unknown): Problem | undefined => {
  const { validation, validationContext = "body", statusCode, code } = error as Partial<FastifyError>;
  if (validation?.[0] !== undefined) {
    const fault = validationFault(validation[0], validationContext);
    const detail = `${fault.field} ${fault.message}`;
    return problem({ status: 400, code: "validation_failed", detail, faults: [fault] });
  }
  if (typeof code !== "string" || statusCode === undefined || statusCode < 400 || statusCode > 499) {
    return undefined;
  }
  const fault = refusedBodies[statusCode] ?? { field: "body", message: "can't be read as JSON" };
  const codeOfStatus = statusCode === 400 ? "validation_failed" : "request_refused";
  return problem({
    status: statusCode,
    code: codeOfStatus,
    detail: `${fault.field} ${fault.message}`,
    faults: [fault],
  });
};

const refusedBodies: Readonly<Record<number, { readonly field: string; readonly message: string }>> = {
  413: { field: "body", message: "is too large" },
  415: { field: "Content-Type", message: "must be application/json" },
};

/** The database being away is the client's cue to repeat; anything else is a defect, and its text stays here. */
const ofInfrastructure = (error: unknown): Problem => {
  const kind = classify(error);
  if (kind === "unavailable" || kind === "retry") {
    return problem({
      status: 503,
      code: "service_unavailable",
      detail: "the database does not answer: repeat the request",
      headers: { "retry-after": "1" },
    });
  }
  return problem({ status: 500, code: "internal_error", detail: "the service failed; the error was logged" });
};
