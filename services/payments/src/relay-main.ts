import { startRelay } from "idemkit";
import { kafkaPublisher } from "idemkit/kafka";
import { inProcessConsumers } from "./adapters/in/events/in-process.ts";
import { openEventProcess, reportOutcome } from "./event-process.ts";
import { kafkaClient } from "./kafka-client.ts";
import { runUntilTold } from "./run-until-told.ts";

// Takes events from the outbox to Kafka, or without brokers to the consumers in this process.
const { config, logger, pool, database } = openEventProcess();
const { kafkaBrokers, databaseUrl: connectionString, relayLeaseMs: leaseMs } = config;

await runUntilTold(logger, async () => {
  const publisher =
    kafkaBrokers === undefined
      ? inProcessConsumers(database, reportOutcome)
      : kafkaPublisher(kafkaClient(kafkaBrokers));
  const relay = startRelay(database, {
    publisher,
    leaseMs,
    notify: { connectionString },
    onParked: ({ topic, reason }) =>
      logger.error({ topic, reason }, "a key is parked: its event was refused"),
    logger,
  });
  logger.info({ to: kafkaBrokers ?? "consumers in this process" }, "Relay started");
  const stop = async (): Promise<void> => {
    await relay.stop();
    await publisher[Symbol.asyncDispose]();
    await pool.end();
  };
  return { stop };
});
