import { createHash } from "node:crypto";

/**
 * Canonical JSON, written by hand.
 * @param {unknown} value
 * @returns {string}
 */
function canonical(value) {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  const members = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(",")}}`;
}

/**
 * @param {string} method
 * @param {string} url
 * @param {unknown} body
 */
export function fingerprintOf(method, url, body) {
  const hash = createHash("sha256").update(`${method} ${url} `).update(canonical(body)).digest();
  return Buffer.concat([Uint8Array.of(1), hash]);
}

/** @param {readonly string[]} parts */
export function lockOf(...parts) {
  const text = parts.map((part) => `${part.length}:${part}`).join("");
  return createHash("sha256").update(text).digest().readBigInt64BE(0).toString();
}
