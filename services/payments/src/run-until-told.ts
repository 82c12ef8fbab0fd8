import type { FastifyBaseLogger } from "fastify";
import type { Service } from "./service.ts";

/** A stop that takes longer is cut short; what it leaves behind is safe to lose, that is what the layer is for. */
const STOP_TIMEOUT_MS = 15_000;

/** Starts the service and stops it on SIGTERM, SIGINT, or the end of the process that holds its IPC channel. */
export const runUntilTold = async (
  logger: FastifyBaseLogger,
  start: () => Promise<Service>,
): Promise<void> => {
  try {
    const service = await start();
    const stop = (): void => void stopProcess(logger, service);
    process.once("SIGTERM", stop);
    process.once("SIGINT", stop);
    process.once("disconnect", stop);
    process.send?.({ url: service.url });
  } catch (error) {
    logger.fatal({ err: error }, "the service could not start");
    process.exit(1);
  }
};

const stopProcess = async (logger: FastifyBaseLogger, service: Service): Promise<void> => {
  setTimeout(() => {
    logger.error(`stopping took more than ${STOP_TIMEOUT_MS} ms`);
    process.exit(1);
  }, STOP_TIMEOUT_MS).unref();
  try {
    await service.stop();
    process.exit(0);
  } catch (error) {
    logger.error({ err: error }, "the service could not stop cleanly");
    process.exit(1);
  }
};
