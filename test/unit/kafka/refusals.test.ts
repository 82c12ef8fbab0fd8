import { Consumer, kGetApi, kGetConnection, Producer } from "@platformatic/kafka";
import { consume } from "idemkit/kafka";
import type { KafkaClient } from "idemkit/kafka";
import { fromConfluent } from "idemkit/confluent";
import { fromKafkaJs } from "idemkit/kafkajs";
import { fromPlatformatic } from "idemkit/platformatic";
import { fromPg } from "idemkit/pg";
import { Kafka } from "kafkajs";
import pg from "pg";
import { describe, expect, test } from "vitest";

const kafka = new Kafka({ brokers: ["127.0.0.1:1"] });
const platformatic = { Consumer, Producer, kGetApi, kGetConnection };
/** Refused before it is looked at. */
const confluent = { Producer: Map, KafkaConsumer: Map };
const database = fromPg(new pg.Pool({ connectionTimeoutMillis: 1000 }));
const connection = { "bootstrap.servers": "127.0.0.1:1" };

describe("what is refused at start-up", () => {
  test.each([
    ["kafkajs, one replica's acknowledgement", () => fromKafkaJs(kafka, { producer: { acks: 1 } })],
    ["kafkajs, not idempotent", () => fromKafkaJs(kafka, { producer: { idempotent: false } })],
    ["kafkajs, five requests in flight", () => fromKafkaJs(kafka, { producer: { maxInFlightRequests: 5 } })],
    ["kafkajs, a partitioner", () => fromKafkaJs(kafka, { producer: { createPartitioner: () => () => 0 } })],
    [
      "platformatic, acks",
      () => fromPlatformatic(platformatic, { bootstrapBrokers: ["a:1"], producer: { acks: 1 } }),
    ],
    [
      "platformatic, not idempotent",
      () => fromPlatformatic(platformatic, { bootstrapBrokers: ["a:1"], connection: { idempotent: false } }),
    ],
    [
      "platformatic, a partitioner",
      () => fromPlatformatic(platformatic, { bootstrapBrokers: ["a:1"], producer: { partitioner: () => 0 } }),
    ],
    ["confluent, acks", () => fromConfluent(confluent, { connection: { ...connection, acks: 1 } })],
    [
      "confluent, not idempotent",
      () => fromConfluent(confluent, { connection, producer: { "enable.idempotence": false } }),
    ],
    [
      "confluent, transactions",
      () => fromConfluent(confluent, { connection, producer: { "transactional.id": "a" } }),
    ],
  ])("a producer with weaker settings: %s", (_name, make) => {
    expect(make).toThrow(expect.objectContaining({ code: "kafka_producer_unsafe" }) as Error);
  });

  test.each([
    ["kafkajs", () => fromKafkaJs(kafka, { consumer: { autoCommit: true } })],
    ["kafkajs, an interval", () => fromKafkaJs(kafka, { consumer: { autoCommitInterval: 5000 } })],
    [
      "platformatic",
      () => fromPlatformatic(platformatic, { bootstrapBrokers: ["a:1"], consumer: { autocommit: 1000 } }),
    ],
    [
      "confluent",
      () => fromConfluent(confluent, { connection: { ...connection, "enable.auto.commit": true } }),
    ],
    [
      "confluent, stored offsets",
      () => fromConfluent(confluent, { connection, consumer: { "enable.auto.offset.store": true } }),
    ],
    ["consume", () => consume({ ...consumeOptions(fromKafkaJs(kafka)), autoCommit: true } as never, {})],
  ])("auto-commit: %s", (_name, make) => {
    expect(make).toThrow(expect.objectContaining({ code: "kafka_auto_commit" }) as Error);
  });

  test.each([
    ["a name nobody knows", { batchsize: 10 }, "batchSize"],
    ["no topics", { topics: [] }, "topics"],
    [
      "heartbeats as rare as the session is long",
      { heartbeatMs: 9000, sessionTimeoutMs: 10_000 },
      "heartbeatMs",
    ],
    [
      "a rebalance shorter than the session",
      { rebalanceTimeoutMs: 5000, sessionTimeoutMs: 10_000 },
      "rebalanceTimeoutMs",
    ],
    ["an inbox option out of range", { lockTimeoutMs: -1 }, "lockTimeoutMs"],
  ])("an option of consume: %s", (_name, more, at) => {
    const make = (): unknown => consume({ ...consumeOptions(fromKafkaJs(kafka)), ...more } as never, {});
    expect(make).toThrow(new RegExp(at));
    expect(make).toThrow(expect.objectContaining({ code: "option_invalid" }) as Error);
  });
});

function consumeOptions(client: KafkaClient): object {
  return { database, client, consumer: "ledger", topics: ["payment"] };
}
