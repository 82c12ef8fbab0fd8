import { hash } from "node:crypto";

import { IdemkitError } from "../errors.ts";
import type { Identity } from "./ports.ts";

/** Longest scope, in UTF-16 units: three columns of this size fit a B-tree entry of PostgreSQL with room to spare. */
const maxScopeLength = 255;
/** Longest key: the limit of the HTTP contract. */
const maxKeyLength = 255;
const printableAscii = /^[\x20-\x7e]+$/;

/** Whether a text is a key: 1 to 255 printable ASCII characters. */
export function isKey(key: unknown): key is string {
  return typeof key === "string" && key.length <= maxKeyLength && printableAscii.test(key);
}

/**
 * Checks an identity before any I/O.
 * @throws IdemkitError `scope_missing`, `idempotency_key_missing`, `idempotency_key_malformed`.
 */
export function checkIdentity({ scope, key }: Identity): void {
  checkScope(scope);
  if (key === undefined || key === null) throw new IdemkitError("idempotency_key_missing");
  if (!isKey(key)) throw new IdemkitError("idempotency_key_malformed");
}

/** @throws IdemkitError `scope_missing`. */
function checkScope(scope: unknown): asserts scope is string {
  if (typeof scope !== "string" || scope.trim() === "") throw new IdemkitError("scope_missing");
  // PostgreSQL's text has no NUL, and a lone surrogate would be stored as U+FFFD and so meet another scope.
  if (scope.length > maxScopeLength || scope.includes("\0") || !scope.isWellFormed()) {
    throw new IdemkitError("scope_missing", {
      detail: `it must be well-formed text of at most ${maxScopeLength} characters without NUL`,
    });
  }
}

/** One text for one identity: lengths in front keep `a` + `bc` and `ab` + `c` apart. */
export function identityText({ scope, operation, key }: Identity): string {
  return `${scope.length}:${scope}${operation.length}:${operation}${key.length}:${key}`;
}

/**
 * The advisory lock of an identity: the first 64 bits of SHA-256 over a domain tag, the schema and the identity, as the
 * signed integer that PostgreSQL takes. Computed here and not by `hashtextextended`, whose collisions a client could
 * aim at another tenant's lock. A collision gives a false "in progress", never a wrong answer.
 */
export function lockOf(schema: string, identity: Identity): bigint {
  const text = `idemkit.command\0${schema.length}:${schema}${identityText(identity)}`;
  const first64 = hash("sha256", text, "hex").slice(0, 16); // a buffer here would cost half as much again
  return BigInt.asIntN(64, BigInt(`0x${first64}`));
}
