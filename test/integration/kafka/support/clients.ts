import { Consumer, kGetApi, kGetConnection, Producer } from "@platformatic/kafka";
import type { KafkaClient } from "idemkit/kafka";
import { fromKafkaJs } from "idemkit/kafkajs";
import { fromPlatformatic } from "idemkit/platformatic";

import { kafkaBrokers, kafkaJs } from "../../../support/kafka.ts";

/** A client behind the port. */
export interface Binding {
  readonly name: string;
  /** False where the client is not installed. @defaultValue true */
  readonly installed?: boolean;
  connect(brokers?: string): KafkaClient;
}

export const kafkaJsBinding: Binding = {
  name: "kafkajs",
  connect: (brokers = kafkaBrokers()) => fromKafkaJs(kafkaJs(brokers)),
};

export const platformaticBinding: Binding = {
  name: "@platformatic/kafka",
  connect: (brokers = kafkaBrokers()) =>
    fromPlatformatic(
      { Consumer, Producer, kGetApi, kGetConnection },
      { bootstrapBrokers: brokers.split(",") },
    ),
};
