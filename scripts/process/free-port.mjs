import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/**
 * Below the ranges that systems take the ports of outgoing connections from: such a connection would keep a server that is
 * stopped and started again from its port, for as long as it lasts.
 */
const range = { from: 10_000, to: 32_768 };
const tries = 100;

/**
 * @param {number} port
 * @returns {Promise<boolean>}
 */
function isFree(port) {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}

/** @returns {Promise<number>} a port that was free a moment ago, and that outgoing connections leave alone */
export async function freePort() {
  for (let tried = 0; tried < tries; tried += 1) {
    const port = randomInt(range.from, range.to);
    if (await isFree(port)) return port;
  }
  throw new Error(`none of ${tries} ports from ${range.from} to ${range.to} is free on 127.0.0.1`);
}
