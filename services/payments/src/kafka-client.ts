import type { KafkaClient } from "idemkit/kafka";
import { fromKafkaJs } from "idemkit/kafkajs";
import { Kafka, logLevel } from "kafkajs";

/** The client of every process that talks to Kafka. What goes wrong is reported by those who use it, once. */
export const kafkaClient = (brokers: readonly string[]): KafkaClient =>
  fromKafkaJs(new Kafka({ clientId: "payments", brokers: [...brokers], logLevel: logLevel.NOTHING }));
