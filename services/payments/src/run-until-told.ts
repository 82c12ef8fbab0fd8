import type { FastifyBaseLogger } from "fastify";

/** What a process of the service runs. */
export interface Startable {
  /** Where it listens, if it does. */
  readonly url?: string;
  stop(): Promise<void>;
}

/** A stop that takes longer is cut short; what it leaves behind is safe to lose, that is what the layer is for. */
const STOP_TIMEOUT_MS = 15_000;

/** Runs a process of the service until SIGTERM, SIGINT, or the end of the process that holds this one's IPC channel. */
export const runUntilTold = async (
  logger: FastifyBaseLogger,
  start: () => Promise<Startable>,
): Promise<void> => {
  // From the first moment on: a process that is told to stop while it starts stops as well.
  const told = new Promise<void>((resolve) => {
    for (const event of ["SIGTERM", "SIGINT", "disconnect"]) {
      process.once(event, resolve);
    }
  });
  try {
    const service = await start();
    process.send?.({ started: true, url: service.url });
    await told;
    setTimeout(() => tooLate(logger), STOP_TIMEOUT_MS).unref();
    await service.stop();
    process.exit(0);
  } catch (error) {
    logger.fatal({ err: error }, "the service failed to start or to stop");
    process.exit(1);
  }
};

const tooLate = (logger: FastifyBaseLogger): never => {
  logger.error(`stopping took more than ${STOP_TIMEOUT_MS} ms`);
  process.exit(1);
};
