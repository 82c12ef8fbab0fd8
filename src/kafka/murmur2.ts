/* oxlint-disable no-bitwise -- a hash is bit arithmetic */

const seed = 0x9747b28c;
const m = 0x5bd1e995;
const r = 24;

/** MurmurHash 2 as the Java client has it (`Utils.murmur2`): 32 bits, signed. */
export function murmur2(data: Uint8Array): number {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const whole = data.length & ~3;
  let h = seed ^ data.length;
  for (let at = 0; at < whole; at += 4) {
    let k = Math.imul(view.getInt32(at, true), m);
    k = Math.imul(k ^ (k >>> r), m);
    h = Math.imul(h, m) ^ k;
  }
  return finish(mixTail(h, data, whole));
}

/** The one to three bytes behind the last whole word. */
function mixTail(h: number, data: Uint8Array, from: number): number {
  if (from === data.length) return h;
  let tail = 0;
  for (let at = data.length - 1; at >= from; at -= 1) tail = (tail << 8) | (data[at] ?? 0);
  return Math.imul(h ^ tail, m);
}

function finish(h: number): number {
  const mixed = Math.imul(h ^ (h >>> 13), m);
  return mixed ^ (mixed >>> 15);
}

/**
 * The partition of a key: the same as the Java client's default partitioner, so that every producer agrees on where a
 * key's events go, whatever client it uses.
 * @param key - text is taken as UTF-8
 * @param partitions - the topic's number of partitions
 */
export function murmur2Partition(key: string | Uint8Array, partitions: number): number {
  const bytes = typeof key === "string" ? new TextEncoder().encode(key) : key;
  return (murmur2(bytes) & 0x7fffffff) % partitions;
}
