import { fromKafkaJs } from "idemkit/kafkajs";
import type { KafkaClient } from "idemkit/kafka";

import { kafkaBrokers, kafkaJs } from "../../../support/kafka.ts";

export interface Binding {
  readonly name: string;
  connect(brokers?: string): KafkaClient;
}

/** Every binding that can be installed from the root's lock file. */
export const bindings: readonly Binding[] = [
  { name: "kafkajs", connect: (brokers = kafkaBrokers()) => fromKafkaJs(kafkaJs(brokers)) },
];
