import { once } from "node:events";
import { createServer } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

/** How long the last service on the port may take to be gone, where it was killed a moment ago. */
const PATIENCE_MS = 3000;
const POLL_MS = 100;

/** @throws Error naming `PORT` where something else listens there */
export const requireFreePort = async (port: number): Promise<void> => {
  const deadline = performance.now() + PATIENCE_MS;
  while (!(await isFree(port))) {
    if (performance.now() > deadline) {
      throw new Error(`port ${port} is taken: choose another one, PORT=${port + 1} npm start`);
    }
    await delay(POLL_MS);
  }
};

const isFree = async (port: number): Promise<boolean> => {
  const server = createServer();
  try {
    server.listen({ host: "127.0.0.1", port });
    await once(server, "listening");
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") {
      throw error;
    }
    return false;
  } finally {
    server.close();
  }
};
