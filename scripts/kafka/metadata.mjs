// Asks a broker for its metadata in Kafka's own protocol, so that the launcher needs no client.
import { connect } from "node:net";

const metadataApi = 3;
const version = 1;
const correlation = 1;

/** Header (key, version, correlation, no client id), then an empty list: no topics, only brokers. */
function request() {
  const body = Buffer.alloc(4 + 14);
  body.writeInt32BE(14, 0);
  body.writeInt16BE(metadataApi, 4);
  body.writeInt16BE(version, 6);
  body.writeInt32BE(correlation, 8);
  body.writeInt16BE(-1, 12);
  body.writeInt32BE(0, 14);
  return body;
}

/** @param {Buffer} response the size, the correlation, then the list of brokers */
const brokerCount = (response) => (response.length < 12 ? 0 : response.readInt32BE(8));

/**
 * @param {number} port
 * @param {{ timeoutMs?: number }} [options]
 * @returns {Promise<boolean>} whether a broker there serves, and is registered with its controller
 */
export function isServing(port, { timeoutMs = 1000 } = {}) {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    let received = Buffer.alloc(0);
    const end = (/** @type {boolean} */ serving) => {
      socket.destroy();
      resolve(serving);
    };
    socket.setTimeout(timeoutMs, () => end(false));
    socket.once("error", () => end(false));
    socket.once("close", () => end(false));
    socket.once("connect", () => socket.write(request()));
    socket.on("data", (chunk) => {
      received = Buffer.concat([received, chunk]);
      if (received.length >= 12) end(brokerCount(received) > 0);
    });
  });
}
