import { STATUS_CODES } from "node:http";
import type { FieldFault } from "../../../core/errors.ts";

/** An answer that says what went wrong: RFC 9457 problem details, with the members this service adds. */
export interface Problem {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

export interface ProblemOptions {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly faults?: readonly FieldFault[];
  readonly headers?: Readonly<Record<string, string>>;
}

const PROBLEM_TYPE = "application/problem+json";

/** `field` is the first fault's, for clients that mark one input; `errors` has them all. */
export const problem = (options: ProblemOptions): Problem => {
  const { status, code, detail, faults = [], headers = {} } = options;
  const [first] = faults;
  return {
    status,
    headers: { "content-type": PROBLEM_TYPE, ...headers },
    body: {
      type: "about:blank",
      title: STATUS_CODES[status] ?? "Error",
      status,
      detail,
      code,
      // As in the library's own answers: what a client should do, without reading prose.
      ...(status === 503 ? { retry: "same-key" } : {}),
      ...(first === undefined ? {} : { field: first.field, errors: faults }),
    },
  };
};
