import { startKafkaConsumers } from "./adapters/in/kafka/kafka-consumers.ts";
import { openEventProcess, reportOutcome } from "./event-process.ts";
import { kafkaClient } from "./kafka-client.ts";
import { runUntilTold } from "./run-until-told.ts";

// Consumes the service's events from Kafka: the ledger and the notifications.
const { config, logger, pool, database } = openEventProcess();

await runUntilTold(logger, async () => {
  if (config.kafkaBrokers === undefined) {
    throw new Error("KAFKA_BROKERS must be set: without brokers the relay's process has the consumers");
  }
  const client = kafkaClient(config.kafkaBrokers);
  const consumers = startKafkaConsumers({ database, client, onOutcome: reportOutcome, logger });
  logger.info({ consumers: consumers.map(({ inbox }) => inbox.consumer) }, "Consumers started");
  const stop = async (): Promise<void> => {
    await Promise.all(consumers.map((consumer) => consumer.stop()));
    await pool.end();
  };
  return { stop };
});
