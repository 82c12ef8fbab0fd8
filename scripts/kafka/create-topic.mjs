// Creates a topic, and waits until each of its partitions has a leader that answers.
import { setTimeout as delay } from "node:timers/promises";

const timeoutMs = 20_000;

/**
 * Does nothing where the topic is there. KafkaJS's own wait for leaders fails where the broker doesn't know a new topic yet.
 * @param {import("kafkajs").Admin} admin connected
 * @param {import("kafkajs").ITopicConfig & { numPartitions: number }} topic
 */
export async function createTopic(admin, topic) {
  await admin.createTopics({ topics: [topic], waitForLeaders: false });
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    try {
      await admin.fetchTopicOffsets(topic.topic);
      return;
    } catch (error) {
      if (performance.now() > deadline) throw error;
    }
    await delay(50);
  }
}
