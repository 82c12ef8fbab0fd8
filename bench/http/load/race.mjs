import { keyOf, requestOf } from "./commands.mjs";
import { openConnection } from "./connection.mjs";

/**
 * @typedef {object} Race
 * @property {number} port
 * @property {string} path
 * @property {string} prefix
 * @property {number} first
 * @property {number} commands
 * @property {number} copies of each command, sent at the same moment on connections of their own
 */

/** A client gives up after this many tries; an answer of 409 or 503 asks to come back. */
const maxTries = 50;

/**
 * Sends every command several times at once, each copy again until it has its answer, as clients with short patience do.
 * @param {Race} race
 * @returns {Promise<{ acknowledged: number, different: number }>} commands with an answer, and those whose copies got
 * different ones
 */
export async function runRace({ port, path, prefix, first, commands, copies }) {
  const open = await Promise.all(Array.from({ length: copies }, () => openConnection(port)));
  const result = { acknowledged: 0, different: 0 };
  for (let n = first; n < first + commands; n += 1) {
    const request = requestOf(path, keyOf(prefix, n), n);
    const answers = await Promise.all(open.map((connection) => answerTo(connection, request)));
    const bodies = new Set(answers.filter((answer) => answer !== undefined));
    if (bodies.size > 0) result.acknowledged += 1;
    if (bodies.size > 1) result.different += 1;
  }
  for (const connection of open) connection.close();
  return result;
}

/**
 * @param {import("./connection.mjs").Connection} connection
 * @param {string} request
 * @returns {Promise<string | undefined>} the body of the answer, in an order of its members that is always the same
 */
async function answerTo(connection, request) {
  for (let tries = 0; tries < maxTries; tries += 1) {
    const { status, body } = await connection.send(request);
    if (status === 201) return sorted(body);
    await new Promise((resolve) => {
      setTimeout(resolve, 5);
    });
  }
  return undefined;
}

/** A store of `jsonb` gives the members of the same answer in another order. */
function sorted(/** @type {string} */ body) {
  const value = /** @type {Record<string, unknown>} */ (JSON.parse(body));
  return JSON.stringify(value, Object.keys(value).toSorted());
}
