import { isUtf8 } from "node:buffer";

/** @throws SyntaxError where the bytes are not UTF-8 or not JSON. */
export function dataOf(payload: Uint8Array): unknown {
  // A lenient decoder would make U+FFFD of what a broken producer sent, and the handler would book it.
  if (!isUtf8(payload)) throw new SyntaxError("the payload is not UTF-8");
  const text = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString("utf8");
  return JSON.parse(text) as unknown;
}
