const decoder = new TextDecoder("utf-8", { fatal: true });

/** @throws TypeError or SyntaxError where the bytes are not UTF-8 or not JSON. */
export function dataOf(payload: Uint8Array): unknown {
  return JSON.parse(decoder.decode(payload)) as unknown;
}
