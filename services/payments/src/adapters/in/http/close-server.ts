import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { FastifyInstance } from "fastify";

const CHECK_MS = 50;

/**
 * Makes a close that waits for requests and not for connections. Node's own idea of an idle connection is wrong three
 * times here: it spares one that was opened ahead and never used, it looks only once, so that one whose request ends
 * later is kept alive, and it cuts one whose answer is complete but waits for its COMMIT.
 */
export const closable = (app: FastifyInstance): (() => Promise<void>) => {
  const idle = new Set<Socket>();
  app.server.on("connection", (socket: Socket) => {
    idle.add(socket);
    socket.once("close", () => idle.delete(socket));
  });
  app.server.on("request", ({ socket }: IncomingMessage, response: ServerResponse) => {
    idle.delete(socket);
    response.once("close", () => socket.destroyed || idle.add(socket));
  });
  const closeIdle = (): void => {
    for (const socket of idle) {
      socket.destroy();
    }
  };
  // Node's and Fastify's close both call this one.
  app.server.closeIdleConnections = closeIdle;
  return async () => {
    const check = setInterval(closeIdle, CHECK_MS);
    try {
      await app.close();
    } finally {
      clearInterval(check);
    }
  };
};
