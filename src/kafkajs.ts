export { fromKafkaJs } from "./kafka/kafkajs/client.ts";
export type { KafkaJsOptions } from "./kafka/kafkajs/client.ts";
export type { KafkaJs } from "./kafka/kafkajs/structure.ts";
