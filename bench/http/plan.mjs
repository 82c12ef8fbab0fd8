/**
 * One thing that is measured: a variant that runs a handler, for new commands or for replays of finished ones.
 * `elsewhere` are replays that reach another process than the one that ran the command.
 * @typedef {object} Cell
 * @property {string} variant
 * @property {"one" | "five"} handler of one or of five statements
 * @property {"new" | "replay" | "elsewhere"} kind
 */

/** @param {Cell} cell */
export function cellName({ variant, handler, kind }) {
  return `${variant} ${handler} ${kind}`;
}

/**
 * Every variant, with what is measured of it.
 * @type {Readonly<Record<string, readonly [Cell["handler"], Cell["kind"]][]>>}
 */
const plan = {
  bare: [
    ["one", "new"],
    ["five", "new"],
  ],
  handwritten: [
    ["one", "new"],
    ["five", "new"],
    ["one", "replay"],
  ],
  idemkit: [
    ["one", "new"],
    ["five", "new"],
    ["one", "replay"],
    ["one", "elsewhere"],
  ],
  "seed-design": [
    ["one", "new"],
    ["five", "new"],
    ["one", "replay"],
  ],
  "node-idempotency": [
    ["one", "new"],
    ["one", "replay"],
  ],
  powertools: [
    ["one", "new"],
    ["one", "replay"],
  ],
};

/** The names of all variants. */
export const variantNames = Object.keys(plan);

/**
 * @param {readonly string[]} variants
 * @returns {Cell[]}
 */
export function cellsOf(variants) {
  return variants.flatMap((variant) => {
    const cells = plan[variant];
    if (cells === undefined) throw new Error(`no variant ${variant}: there are ${variantNames.join(", ")}`);
    return cells.map(([handler, kind]) => ({ variant, handler, kind }));
  });
}

/**
 * The order of one round: begun elsewhere each time, so that nobody always follows the same neighbour's writes.
 * @template T
 * @param {readonly T[]} items
 * @param {number} round
 * @returns {T[]}
 */
export function rotated(items, round) {
  const by = items.length === 0 ? 0 : (round * 5) % items.length;
  return [...items.slice(by), ...items.slice(0, by)];
}
