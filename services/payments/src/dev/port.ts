import { once } from "node:events";
import { createServer } from "node:net";

/** @throws Error naming `PORT` where something else listens there */
export const requireFreePort = async (port: number): Promise<void> => {
  const server = createServer();
  try {
    server.listen({ host: "127.0.0.1", port });
    await once(server, "listening");
  } catch (error) {
    throw new Error(`port ${port} is taken: choose another one, PORT=${port + 1} npm start`, {
      cause: error,
    });
  } finally {
    server.close();
  }
};
