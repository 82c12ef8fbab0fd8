import { createHmac, timingSafeEqual } from "node:crypto";

import { invalid } from "../internal/options.ts";

/** More signatures than any provider sends while it rotates secrets; the rest of a forged header is not worth its time. */
const maxSignatures = 16;

/** The HMAC-SHA256 of the parts under each of the secrets. */
export function macs(
  secrets: readonly Uint8Array[],
  ...parts: readonly (string | Uint8Array)[]
): readonly Buffer[] {
  return secrets.map((secret) => {
    const mac = createHmac("sha256", secret);
    for (const part of parts) mac.update(part);
    return mac.digest();
  });
}

/** Whether one of the signatures is one of the MACs. Compares every pair in constant time and stops at none. */
export function anyMatches(signatures: readonly Buffer[], expected: readonly Buffer[]): boolean {
  let found = false;
  for (const signature of signatures.slice(0, maxSignatures)) {
    for (const mac of expected) {
      if (signature.length === mac.length && timingSafeEqual(signature, mac)) found = true;
    }
  }
  return found;
}

/** One secret, or several while they are rotated. */
export type Secrets = string | readonly string[];

/** @throws IdemkitError `option_invalid` for an empty list or a secret that `decode` refuses. */
export function secretsOf(
  scheme: string,
  given: Secrets,
  decode: (secret: string) => Uint8Array,
): readonly Uint8Array[] {
  const secrets = typeof given === "string" ? [given] : given;
  if (secrets.length === 0) throw invalid(`${scheme}.secret`, "must be given");
  return secrets.map((secret) => {
    const decoded = typeof secret === "string" ? decode(secret) : new Uint8Array();
    // A shorter one is a mistake in the configuration, such as an empty variable, and could be guessed.
    if (decoded.length >= 16) return decoded;
    throw invalid(`${scheme}.secret`, "must be the provider's signing secret: at least 16 bytes");
  });
}
