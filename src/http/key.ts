import { parseItem } from "structured-headers";

import { isKey } from "../core/identity.ts";
import { IdemkitError } from "../errors.ts";

/** The header of the IETF draft, in the lower case that Node gives names. */
const keyHeader = "idempotency-key";

/**
 * The key in an `Idempotency-Key` header. `"abc"`, the structured string of the IETF draft, and the bare `abc` are one
 * key. A bare key has no comma: whoever joins repeated headers puts one between them, so that two keys would look like
 * one.
 * @throws IdemkitError `idempotency_key_malformed`.
 */
function keyOf(header: string): string {
  const given = header.trim();
  const key = given.startsWith('"') ? quoted(given) : given;
  const repeated = key === given && given.includes(",");
  if (repeated || !isKey(key)) throw new IdemkitError("idempotency_key_malformed");
  return key;
}

/** RFC 8941 section 3.3.3; parameters that nobody defined are ignored, as it asks. */
function quoted(given: string): string {
  try {
    const item: readonly unknown[] = parseItem(given);
    if (typeof item[0] === "string") return item[0];
  } catch (cause) {
    throw new IdemkitError("idempotency_key_malformed", { cause });
  }
  throw new IdemkitError("idempotency_key_malformed");
}

/** The part of a request of `node:http` (or `node:http2`) that a key is read from. */
export interface NodeHeaders {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly rawHeaders?: readonly string[];
}

/**
 * The key of a request of Node, or `undefined` where there is no such header. Node joins repeated headers, so that the
 * raw ones are counted where the value could be two.
 * @throws IdemkitError `idempotency_key_malformed`.
 */
export function keyOfNode({ headers, rawHeaders }: NodeHeaders): string | undefined {
  const header = headers[keyHeader];
  if (header === undefined) return undefined;
  if (typeof header !== "string") throw new IdemkitError("idempotency_key_malformed");
  if (header.includes(",") && isRepeated(rawHeaders ?? [])) {
    throw new IdemkitError("idempotency_key_malformed");
  }
  return keyOf(header);
}

function isRepeated(rawHeaders: readonly string[]): boolean {
  return rawHeaders.filter((name, i) => i % 2 === 0 && name.toLowerCase() === keyHeader).length > 1;
}

/**
 * The key of a fetch-style request, or `undefined` where there is no such header.
 * @throws IdemkitError `idempotency_key_malformed`.
 */
export function keyOfFetch(headers: { get(name: string): string | null }): string | undefined {
  const header = headers.get(keyHeader);
  return header === null ? undefined : keyOf(header);
}

/**
 * The key, which must be there.
 * @throws IdemkitError `idempotency_key_missing`.
 */
export function required(key: string | undefined): string {
  if (key === undefined) throw new IdemkitError("idempotency_key_missing");
  return key;
}
