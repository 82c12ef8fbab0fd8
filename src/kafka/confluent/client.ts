import { IdemkitError } from "../../errors.ts";
import { checkNames } from "../../internal/options.ts";
import type { KafkaClient } from "../port.ts";
import { joinGroup } from "./group.ts";
import { connectProducer } from "./producer.ts";
import { protocolErrorOf } from "./protocol-error.ts";
import type { ConfluentModule, RdKafkaConf } from "./structure.ts";

/** Settings of {@link fromConfluent}, by librdkafka's names. */
export interface ConfluentOptions {
  /** What producers and consumers share: `bootstrap.servers`, `security.protocol` and the like. */
  readonly connection: RdKafkaConf;
  /** Further settings of the producer, such as `compression.codec`. */
  readonly producer?: RdKafkaConf;
  /** Further settings of the consumer, such as `fetch.max.bytes`. */
  readonly consumer?: RdKafkaConf;
}

/**
 * idemkit over Confluent's client (librdkafka).
 *
 * A rebalance waits for the work in flight (`awaitsRevocation: true`), and with the cooperative protocol, which is the
 * default here, only those partitions are revoked that move (`keepsPartitions: true`).
 * @param module - the module: `import kafka from "@confluentinc/kafka-javascript"`
 * @throws IdemkitError `kafka_producer_unsafe`, `kafka_auto_commit`, `option_invalid`.
 */
export function fromConfluent(module: ConfluentModule, options: ConfluentOptions): KafkaClient {
  checkNames("fromConfluent", options, ["connection", "producer", "consumer"]);
  const { connection, producer = {}, consumer = {} } = options;
  requireSafe({ ...connection, ...producer });
  requireManualCommit({ ...connection, ...consumer });
  return {
    name: "@confluentinc/kafka-javascript",
    capabilities: { awaitsRevocation: true, keepsPartitions: true },
    connectProducer: (settings) => connectProducer(module, { ...connection, ...producer }, settings),
    joinGroup: (settings, listener) => joinGroup(module, { ...connection, ...consumer }, settings, listener),
    protocolErrorOf,
  };
}

/** What the publisher's guarantee rests on must not be given otherwise. */
function requireSafe(conf: RdKafkaConf): void {
  const all = new Set<unknown>(["all", -1, "-1"]);
  const faults: Readonly<Record<string, boolean>> = {
    acks: !all.has(conf["acks"] ?? "all"),
    "request.required.acks": !all.has(conf["request.required.acks"] ?? "all"),
    "enable.idempotence": isOff(conf["enable.idempotence"]),
    "transactional.id": "transactional.id" in conf,
    "max.in.flight": Number(conf["max.in.flight"] ?? 1) > 5,
    "max.in.flight.requests.per.connection": Number(conf["max.in.flight.requests.per.connection"] ?? 1) > 5,
  };
  const at = Object.keys(faults).find((name) => faults[name] === true);
  if (at !== undefined) throw new IdemkitError("kafka_producer_unsafe", { detail: `fromConfluent: ${at}` });
}

function requireManualCommit(conf: RdKafkaConf): void {
  const at = ["enable.auto.commit", "auto.commit.enable", "enable.auto.offset.store"].find(
    (name) => name in conf && !isOff(conf[name]),
  );
  if (at !== undefined) throw new IdemkitError("kafka_auto_commit", { detail: `fromConfluent: ${at}` });
}

function isOff(value: unknown): boolean {
  return value === false || value === "false";
}
