// Where the tests' broker comes from: one that is given, else Apache Kafka from Maven's artifacts, else Docker.
import { startBroker } from "./broker.mjs";
import { startDockerBroker, whyNoDocker } from "./docker.mjs";
import { whyNoJars } from "./jars.mjs";

/** @typedef {import("./broker.mjs").Broker} Broker */

/** @returns {string | undefined} why no broker can be started here; nothing where one can */
export function whyNoBroker() {
  const why = whyNoJars();
  if (why === undefined) return undefined;
  const whyNot = whyNoDocker();
  return whyNot === undefined ? undefined : `${why}, ${whyNot}`;
}

/** @returns {string | undefined} why tests on Kafka can't run here; nothing where they can */
export function whyNoKafka() {
  return process.env["KAFKA_BROKERS"] ? undefined : whyNoBroker();
}

/**
 * A broker of one's own, to stop and kill.
 * @returns {Promise<Broker>}
 */
export function ownBroker() {
  return whyNoJars() === undefined ? startBroker() : startDockerBroker();
}

/**
 * A broker to share.
 * @returns {Promise<{ brokers: string, close: () => Promise<void> }>}
 */
export async function sharedBroker() {
  const given = process.env["KAFKA_BROKERS"];
  if (given) return { brokers: given, close: async () => {} };
  const broker = await ownBroker();
  return { brokers: broker.brokers, close: () => broker.remove() };
}
