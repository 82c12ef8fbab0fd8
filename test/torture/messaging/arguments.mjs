import { parseArgs } from "node:util";

/**
 * @typedef {object} Arguments
 * @property {number} seconds how long events are written and faults happen, at the least; draining comes on top
 * @property {number} seed decides the keys, the amounts and the faults
 * @property {number} events how many events are written at least
 * @property {string} client kafkajs, platformatic or confluent
 * @property {boolean} verbose whether the processes' own lines are shown
 */

/**
 * @param {string} name
 * @param {string} text
 */
function whole(name, text) {
  const value = Number(text);
  if (Number.isInteger(value) && value > 0) return value;
  throw new Error(`--${name} must be a whole number above 0, not ${text}`);
}

/** @returns {Arguments} */
export function readArguments() {
  const { values } = parseArgs({
    options: {
      seconds: { type: "string", default: "30" },
      seed: { type: "string", default: String(1 + (Date.now() % 1_000_000)) },
      events: { type: "string" },
      client: { type: "string", default: "kafkajs" },
      verbose: { type: "boolean", default: false },
    },
  });
  const seconds = whole("seconds", values.seconds);
  const events = values.events === undefined ? seconds * 300 : whole("events", values.events);
  return {
    seconds,
    seed: whole("seed", values.seed),
    events,
    client: values.client,
    verbose: values.verbose,
  };
}

/**
 * Numbers in [0, 1) that are the same for the same seed (mulberry32).
 * @param {number} seed
 * @returns {() => number}
 */
export function randomOf(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
