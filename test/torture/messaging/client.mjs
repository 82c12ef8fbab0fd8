import { createRequire } from "node:module";

/**
 * @param {string} name
 * @param {string} brokers
 * @returns {Promise<import("idemkit/kafka").KafkaClient>}
 */
export async function clientOf(name, brokers) {
  if (name === "kafkajs") {
    const [{ fromKafkaJs }, { Kafka, logLevel }] = await Promise.all([
      import("idemkit/kafkajs"),
      import("kafkajs"),
    ]);
    return fromKafkaJs(new Kafka({ brokers: [brokers], logLevel: logLevel.NOTHING }));
  }
  if (name === "platformatic") {
    const [{ fromPlatformatic }, module] = await Promise.all([
      import("idemkit/platformatic"),
      import("@platformatic/kafka"),
    ]);
    return fromPlatformatic(module, { bootstrapBrokers: [brokers] });
  }
  if (name === "confluent") {
    const { fromConfluent } = await import("idemkit/confluent");
    const require = createRequire(new URL("../../kafka-confluent/package.json", import.meta.url));
    const module = /** @type {import("idemkit/confluent").ConfluentModule} */ (
      require("@confluentinc/kafka-javascript")
    );
    return fromConfluent(module, { connection: { "bootstrap.servers": brokers } });
  }
  throw new Error(`--client must be kafkajs, platformatic or confluent, not ${name}`);
}
