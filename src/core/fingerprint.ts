import { createHash, hash, timingSafeEqual } from "node:crypto";

import { IdemkitError } from "../errors.ts";
import { canonicalJson } from "./canonical-json.ts";

/** The version this code writes; an older one stays readable for as long as its records may live. */
const version = 1;
const versionByte = String.fromCodePoint(version);

/** A command as the handler sees it. `none` is a request without a body, which differs from an empty one. */
export type Command =
  | { readonly kind: "none" }
  | { readonly kind: "json"; readonly value: unknown }
  | { readonly kind: "bytes"; readonly value: Uint8Array };

/** Sorts what a caller gives as a command. */
export function commandOf(given: unknown): Command {
  if (given === undefined) return { kind: "none" };
  return given instanceof Uint8Array ? { kind: "bytes", value: given } : { kind: "json", value: given };
}

/**
 * The fingerprint of a command (the seeds' command hash): a version byte, then SHA-256 over its context (for HTTP the
 * method, path and query) and its content, each with its length in front.
 * @throws IdemkitError `command_number_unsafe`, `command_too_deep`, `command_not_json`.
 */
export function fingerprintOf(command: Command, context: readonly string[] = []): Uint8Array {
  const parts = context.map((part) => `${Buffer.byteLength(part)}:${part}`);
  const head = `${parts.join("")}${command.kind}:`;
  return Buffer.from(versionByte + digestOf(head, command), "binary");
}

/** As one character a byte: hashing text in one call to text costs a quarter of what a hash object and buffers do. */
function digestOf(head: string, command: Command): string {
  if (command.kind === "bytes") {
    return createHash("sha256").update(head).update(command.value).digest("binary");
  }
  const content = command.kind === "json" ? canonicalJson(command.value) : "";
  return hash("sha256", head + content, "binary");
}

/**
 * Compares in constant time.
 * @throws IdemkitError `fingerprint_version_unknown` where a newer idemkit wrote the stored one: neither a replay nor
 * a mismatch could be answered truthfully.
 */
export function sameFingerprint(stored: Uint8Array, given: Uint8Array): boolean {
  if (stored[0] !== version) throw new IdemkitError("fingerprint_version_unknown");
  return stored.length === given.length && timingSafeEqual(stored, given);
}
