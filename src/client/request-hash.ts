/* oxlint-disable no-bitwise -- a hash mixes bits */

/**
 * Two 32-bit hashes of FNV's kind. It only has to notice an accidental edit, where Web Crypto may be missing (plain
 * http); a collision is caught by the receiver, whose fingerprint is a real digest.
 */
export function hashOf(head: string, body: Uint8Array | undefined): string {
  let a = 0x811c9dc5;
  let b = 0x9e3779b9;
  const mix = (byte: number): void => {
    a = Math.imul(a ^ byte, 0x01000193);
    b = Math.imul(b ^ (byte + (b >>> 13)), 0x85ebca6b);
  };
  for (const byte of new TextEncoder().encode(head)) mix(byte);
  for (const byte of body ?? []) mix(byte);
  return (a >>> 0).toString(16).padStart(8, "0") + (b >>> 0).toString(16).padStart(8, "0");
}
