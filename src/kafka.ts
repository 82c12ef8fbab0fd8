export { consume } from "./kafka/consume.ts";
export type { Consumer, ConsumeStats } from "./kafka/consume.ts";
export type { ConsumeLogger, ConsumeObserver, ConsumeOptions } from "./kafka/consume-options.ts";
export type { HeaderStyle } from "./kafka/event-headers.ts";
export { murmur2Partition } from "./kafka/murmur2.ts";
export { kafkaPublisher } from "./kafka/publisher.ts";
export type { KafkaPublisherOptions } from "./kafka/publisher.ts";
export type {
  ConsumedRecord,
  GroupListener,
  GroupMember,
  GroupSettings,
  KafkaCapabilities,
  KafkaClient,
  KafkaProducer,
  PartitionOffset,
  PartitionRecords,
  ProducedRecord,
  ProducerSettings,
  TopicPartition,
} from "./kafka/port.ts";
