import type { Admin, ITopicConfig } from "kafkajs";

export function createTopic(
  admin: Admin,
  topic: ITopicConfig & { readonly numPartitions: number },
): Promise<void>;
