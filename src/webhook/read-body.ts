/** @returns the bytes, or `undefined` as soon as there are more than `maxBytes` */
export async function readAtMost(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  maxBytes: number,
): Promise<Uint8Array | undefined> {
  const read: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > maxBytes) return undefined;
    read.push(chunk);
  }
  return Buffer.concat(read);
}
