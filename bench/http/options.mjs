import { parseArgs } from "node:util";

const usage =
  "npm run bench:http -- [--seconds 2] [--rounds 5] [--connections 32] [--pool 10] [--flush-ms 2] [--only bare,idemkit]";

/**
 * @typedef {object} Options
 * @property {number} seconds how long one variant runs one handler in one round
 * @property {number} rounds how often; the order of the variants rotates from one to the next
 * @property {number} connections of the load generator, each with one request at a time
 * @property {number} poolSize connections of each server to PostgreSQL; by default as many as `pg` opens
 * @property {number} flushMs added to every flush of the log: a slower disk, as most have that are shared or replicated
 * @property {readonly string[] | undefined} only the variants to run; all where it is undefined
 */

/**
 * @param {string} name
 * @param {string} given
 */
function positive(name, given) {
  const value = Number(given);
  if (value > 0 && Number.isFinite(value)) return value;
  throw new Error(`--${name} must be a number above 0, not ${given}: ${usage}`);
}

/**
 * @param {string[]} args
 * @returns {Options}
 */
export function parseOptions(args) {
  const { values } = parseArgs({
    args,
    options: {
      seconds: { type: "string", default: "2" },
      rounds: { type: "string", default: "5" },
      connections: { type: "string", default: "32" },
      pool: { type: "string", default: "10" },
      "flush-ms": { type: "string", default: "0" },
      only: { type: "string" },
    },
  });
  return {
    seconds: positive("seconds", values.seconds),
    rounds: Math.ceil(positive("rounds", values.rounds)),
    connections: Math.ceil(positive("connections", values.connections)),
    poolSize: Math.ceil(positive("pool", values.pool)),
    flushMs: values["flush-ms"] === "0" ? 0 : positive("flush-ms", values["flush-ms"]),
    only: values.only?.split(","),
  };
}
