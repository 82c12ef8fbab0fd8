import type { ResponseLike } from "./prepared-request.ts";

/**
 * What a response means for the operation: `final` settles it; `refused` says that it had no effect and will have none, so
 * that a corrected request may go out under a new key; `again` asks for the same request; `in-doubt` is none of these.
 */
export type Verdict =
  | { readonly verdict: "final" | "refused" | "in-doubt" }
  | { readonly verdict: "again"; readonly retryAfterMs: number };

/** Without a problem that says more: the request did not get through, or may be repeated as it is. */
const again = new Set([408, 425, 429, 500, 502, 503, 504]);
/** Says nothing of the operation: the caller's rights are checked before it, also on a replay. */
const rights = new Set([401, 403, 407]);
const firstRefusal = 400;
const firstFailure = 500;
const conflict = 409;

/** Reads a response; the problem's `retry` field has the last word, then the status. */
export function verdictOf(response: ResponseLike, body: string, nowMs: number): Verdict {
  const { status } = response;
  const retryAfterMs = retryAfterOf(response.headers.get("retry-after"), nowMs);
  const { retry, code } = problemIn(response, body);
  const inProgress = status === conflict && retryAfterMs !== undefined;
  if (retry === "same-key" || (retry === undefined && (again.has(status) || inProgress))) {
    return { verdict: "again", retryAfterMs: retryAfterMs ?? 0 };
  }
  // Another command holds this key: whether it is this operation's is the caller's to find out, never a reason for a new key.
  const doubtful = retry === "stop" || code === "idempotency_key_reused" || rights.has(status);
  if (doubtful || status >= firstFailure) return { verdict: "in-doubt" };
  return { verdict: status >= firstRefusal ? "refused" : "final" };
}

interface Problem {
  readonly retry?: unknown;
  readonly code?: unknown;
}

function problemIn(response: ResponseLike, body: string): Problem {
  if (!/^application\/problem\+json\b/i.test(response.headers.get("content-type") ?? "")) return {};
  try {
    const problem: unknown = JSON.parse(body);
    return typeof problem === "object" && problem !== null ? problem : {};
  } catch {
    return {};
  }
}

/** RFC 9110: seconds, or a date. */
function retryAfterOf(value: string | null, nowMs: number): number | undefined {
  if (value === null) return undefined;
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1000;
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, date - nowMs);
}
