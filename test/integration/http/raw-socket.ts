import { connect } from "node:net";

export interface RawExchange {
  /** Every byte that came so far. */
  received(): string;
  /** The status, once it is there. */
  status(): Promise<number>;
}

/** A POST over a socket whose every byte is seen. */
export function rawExchange(url: string, path: string, key: string): RawExchange {
  const { hostname, port, host } = new URL(url);
  let received = "";
  const socket = connect(Number(port), hostname);
  const ended = new Promise<void>((resolve, reject) => {
    socket.once("close", () => resolve());
    socket.once("error", reject);
  });
  socket.on("data", (chunk: Buffer) => (received += chunk.toString("latin1")));
  const head = [`POST ${path} HTTP/1.1`, `Host: ${host}`, `Idempotency-Key: ${key}`, "Connection: close"];
  const body = "{}";
  const content = [`Content-Type: application/json`, `Content-Length: ${body.length}`];
  socket.write([...head, ...content, "", body].join("\r\n"));
  return {
    received: () => received,
    status: async () => {
      await ended;
      return Number(received.split(" ")[1]);
    },
  };
}
