import type { ErrorKind } from "../../../core/errors.ts";

/** The status of every kind of error; complete by type. Anything that isn't a ServiceError is a 500. */
export const statusOfKind: Readonly<Record<ErrorKind, number>> = {
  validation: 400,
  unauthenticated: 401,
  forbidden: 403,
  "not-found": 404,
  conflict: 409,
  unprocessable: 422,
  unavailable: 503,
};
