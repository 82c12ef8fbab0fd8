/**
 * The same seed gives the same choices.
 * @param {number} seed
 * @returns {{ chance(of: number): boolean, between(from: number, to: number): number, pick<T>(of: readonly T[]): T }}
 */
export function randomOf(seed) {
  const modulus = 2 ** 31 - 1;
  let state = (Math.abs(Math.trunc(seed)) % (modulus - 1)) + 1;
  const next = () => {
    state = (state * 48_271) % modulus;
    return state / modulus;
  };
  // The first numbers of small seeds are alike.
  for (let warmUp = 0; warmUp < 5; warmUp += 1) next();
  return {
    chance: (of) => next() < of,
    between: (from, to) => from + Math.floor(next() * (to - from)),
    pick: (of) => {
      const found = of[Math.floor(next() * of.length)];
      if (found === undefined) throw new Error("there is nothing to pick from");
      return found;
    },
  };
}
