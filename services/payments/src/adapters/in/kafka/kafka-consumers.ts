import { consume } from "idemkit/kafka";
import type { ConsumeLogger, Consumer, KafkaClient } from "idemkit/kafka";
import type { PostgresDatabase } from "idemkit";
import type { PoolClient } from "pg";
import { ORDER_TOPIC } from "../../out/events/outbox-events.ts";
import { eventConsumers } from "../events/consumers.ts";
import type { OnOutcome } from "../events/consumers.ts";

export interface KafkaConsumersOptions {
  readonly database: PostgresDatabase<PoolClient>;
  readonly client: KafkaClient;
  readonly onOutcome: OnOutcome;
  readonly logger: ConsumeLogger;
}

/** Starts both consumers, each a group of its own; more processes share the partitions. */
export const startKafkaConsumers = (options: KafkaConsumersOptions): readonly Consumer[] => {
  const { database, client, onOutcome, logger } = options;
  return eventConsumers.map(({ consumer, handlers, concurrency }) =>
    consume(
      {
        database,
        client,
        consumer,
        concurrency,
        groupId: `payments-${consumer}`,
        topics: [ORDER_TOPIC],
        logger,
        observe: { outcome: (outcome) => onOutcome(consumer, outcome) },
      },
      handlers,
    ),
  );
};
