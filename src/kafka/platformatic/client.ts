import { IdemkitError } from "../../errors.ts";
import { checkNames } from "../../internal/options.ts";
import type { KafkaClient } from "../port.ts";
import { joinGroup } from "./group.ts";
import { connectProducer } from "./producer.ts";
import { protocolErrorOf } from "./protocol-error.ts";
import type { PlatformaticModule } from "./structure.ts";

/** Settings of {@link fromPlatformatic}. */
export interface PlatformaticOptions {
  readonly bootstrapBrokers: readonly string[];
  /** @defaultValue "idemkit" */
  readonly clientId?: string;
  /** What producers and consumers share: `tls`, `sasl` and the like. */
  readonly connection?: Readonly<Record<string, unknown>>;
  /** Further settings of the producer, such as `compression`. */
  readonly producer?: Readonly<Record<string, unknown>>;
  /** Further settings of the consumer, such as `maxBytes`. */
  readonly consumer?: Readonly<Record<string, unknown>>;
}

/** Small: what lasts longer is tried again by the relay and the consumer, on a fresh client. */
const patience = { retries: 3, retryDelay: 250, autocreateTopics: false };

/**
 * idemkit over `@platformatic/kafka` (1.x on Node.js 20).
 *
 * Its rebalance can't be held back (`awaitsRevocation: false`) and revokes every partition (`keepsPartitions: false`).
 * @param kafka - the module: `import * as kafka from "@platformatic/kafka"`
 * @throws IdemkitError `kafka_producer_unsafe`, `kafka_auto_commit`, `option_invalid`.
 */
export function fromPlatformatic(kafka: PlatformaticModule, options: PlatformaticOptions): KafkaClient {
  checkNames("fromPlatformatic", options, [
    "bootstrapBrokers",
    "clientId",
    "connection",
    "producer",
    "consumer",
  ]);
  const { bootstrapBrokers, clientId = "idemkit", connection = {}, producer = {}, consumer = {} } = options;
  requireSafe({ ...connection, ...producer });
  requireManualCommit({ ...connection, ...consumer });
  const shared = { clientId, bootstrapBrokers: [...bootstrapBrokers], ...connection, ...patience };
  return {
    name: "@platformatic/kafka",
    capabilities: { awaitsRevocation: false, keepsPartitions: false },
    connectProducer: (settings) => connectProducer(kafka, { ...shared, ...producer }, settings),
    joinGroup: (settings, listener) => joinGroup(kafka, { ...shared, ...consumer }, settings, listener),
    protocolErrorOf,
  };
}

/** What the publisher's guarantee rests on must not be given otherwise. */
function requireSafe(given: Readonly<Record<string, unknown>>): void {
  const fixed: Readonly<Record<string, unknown>> = { acks: -1, idempotent: true, maxInflights: 1 };
  const weaker = Object.keys(fixed).find((name) => name in given && given[name] !== fixed[name]);
  const at =
    weaker ?? ["partitioner", "transactionalId", "serializers", "registry"].find((name) => name in given);
  if (at !== undefined) {
    throw new IdemkitError("kafka_producer_unsafe", { detail: `fromPlatformatic: ${at}` });
  }
}

function requireManualCommit(given: Readonly<Record<string, unknown>>): void {
  const { autocommit = false } = given;
  if (autocommit !== false) {
    throw new IdemkitError("kafka_auto_commit", { detail: "fromPlatformatic: autocommit" });
  }
}
