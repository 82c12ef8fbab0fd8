import { isUtf8 } from "node:buffer";

/** @throws SyntaxError where the bytes are not UTF-8 or not JSON. */
export function dataOf(payload: Uint8Array): unknown {
  const { buffer, byteOffset, byteLength } = payload;
  const bytes = Buffer.isBuffer(payload) ? payload : Buffer.from(buffer, byteOffset, byteLength);
  const text = bytes.toString("utf8");
  // A lenient decoder makes U+FFFD of what a broken producer sent, and the handler would book it.
  if (text.includes("\uFFFD") && !isUtf8(payload)) throw new SyntaxError("the payload is not UTF-8");
  return JSON.parse(text) as unknown;
}
