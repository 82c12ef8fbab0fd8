export { fromConfluent } from "./kafka/confluent/client.ts";
export type { ConfluentOptions } from "./kafka/confluent/client.ts";
export type { ConfluentModule, RdKafkaConf } from "./kafka/confluent/structure.ts";
