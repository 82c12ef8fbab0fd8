import { once } from "node:events";
import { connect } from "node:net";

/**
 * @typedef {object} Answer
 * @property {number} status
 * @property {string} body
 * @property {boolean} replayed whether the answer carries the marker of a replay
 */

/**
 * @typedef {object} Connection
 * @property {(request: string) => Promise<Answer>} send one request at a time
 * @property {() => void} close
 */

/**
 * Reads one whole answer, or nothing yet. Only what the servers of this benchmark send: a length, no chunks.
 * @param {string} text
 * @returns {Answer | undefined}
 */
function answerIn(text) {
  const headEnd = text.indexOf("\r\n\r\n");
  if (headEnd === -1) return undefined;
  const head = text.slice(0, headEnd).toLowerCase();
  const at = head.indexOf("content-length: ");
  if (at === -1) throw new Error(`an answer without a length: ${head}`);
  const length = Number(head.slice(at + 16).split("\r\n", 1)[0]);
  if (text.length < headEnd + 4 + length) return undefined;
  return {
    status: Number(head.slice(9, 12)),
    body: text.slice(headEnd + 4),
    replayed: head.includes("idempotent-replayed: true"),
  };
}

/**
 * A keep-alive connection that costs little: the generator shares the machine's cores with what it measures.
 * @param {number} port
 * @returns {Promise<Connection>}
 */
export async function openConnection(port) {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  await once(socket, "connect");
  socket.setEncoding("latin1");
  let received = "";
  /** @type {{ resolve: (answer: Answer) => void, reject: (error: unknown) => void } | undefined} */
  let waiting;
  const fail = (/** @type {unknown} */ error) => {
    waiting?.reject(error);
    waiting = undefined;
  };
  socket.on("data", (/** @type {string} */ chunk) => {
    received += chunk;
    const answer = answerIn(received);
    if (answer === undefined || waiting === undefined) return;
    received = "";
    const { resolve } = waiting;
    waiting = undefined;
    resolve(answer);
  });
  socket.on("error", fail);
  socket.on("close", () => fail(new Error("the server closed the connection")));
  return {
    send: (request) =>
      new Promise((resolve, reject) => {
        waiting = { resolve, reject };
        socket.write(request, "latin1");
      }),
    close: () => socket.destroy(),
  };
}
