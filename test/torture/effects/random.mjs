/**
 * The same seed gives the same choices.
 * @param {number} seed
 * @returns {{ chance(of: number): boolean, between(from: number, to: number): number, pick<T>(of: readonly T[]): T }}
 */
export function randomOf(seed) {
  let state = Math.trunc(seed) + 1;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    chance: (of) => next() < of,
    between: (from, to) => from + Math.floor(next() * (to - from)),
    pick: (of) => of[Math.floor(next() * of.length)],
  };
}
