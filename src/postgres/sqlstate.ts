import type { ErrorClass } from "../core/ports.ts";
import { isIdemkitError } from "../errors.ts";

/** The transaction was refused through no fault of its own: 40001 serialization failure, 40P01 deadlock. */
const retry = new Set(["40001", "40P01", "P2034"]); // P2034 is Prisma's name for both
/**
 * The server, or the way to it, cannot do it now, though it may later: 25006 is a server that has become a standby,
 * 55P03 a lock wait that `lock_timeout` cut short, 57014 a statement that `statement_timeout` or an operator cancelled.
 */
const unavailable = new Set([
  "25006",
  "25P03",
  "25P04",
  "55P03",
  "57014",
  "57P01",
  "57P02",
  "57P03",
  "57P05",
]);
/** Classes of the same kind: 08 the connection, 53 resources (full disk, no memory, too many connections). */
const unavailableClasses = new Set(["08", "53"]);
const unavailableSystem = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
]);
/** Of PostgreSQL's classes: `EPIPE`, a code of the system, and `P2010`, one of Prisma's, have five characters too. */
const sqlstate = /^(?:\d[\dA-Z]|F0|HV|P0|XX)[\dA-Z]{3}$/;
/** Object-relational mappers wrap errors a few levels deep; the bound also ends a cycle. */
const maxCauses = 10;

/**
 * Sorts a database error by its SQLSTATE, or by the system's code where there is no answer of a server; looks through
 * `cause`, since mappers wrap errors. Texts are never read: they depend on the server's language.
 */
export function classify(error: unknown): ErrorClass {
  let current = error;
  for (let depth = 0; depth < maxCauses && typeof current === "object" && current !== null; depth += 1) {
    if (isIdemkitError(current, "idempotency_unavailable")) return "unavailable";
    const found = "code" in current && typeof current.code === "string" ? classOf(current.code) : undefined;
    if (found !== undefined) return found;
    current = "cause" in current ? current.cause : undefined;
  }
  return "fatal";
}

function classOf(code: string): ErrorClass | undefined {
  if (retry.has(code)) return "retry";
  if (unavailable.has(code) || unavailableSystem.has(code)) return "unavailable";
  if (!sqlstate.test(code)) return undefined;
  if (unavailableClasses.has(code.slice(0, 2))) return "unavailable";
  if (code.startsWith("23")) return "conflict";
  return "fatal";
}

/** The SQLSTATE of an error or of a cause of it. */
export function sqlstateOf(error: unknown): string | undefined {
  let current = error;
  for (let depth = 0; depth < maxCauses && typeof current === "object" && current !== null; depth += 1) {
    if ("code" in current && typeof current.code === "string" && sqlstate.test(current.code)) {
      return current.code;
    }
    current = "cause" in current ? current.cause : undefined;
  }
  return undefined;
}
