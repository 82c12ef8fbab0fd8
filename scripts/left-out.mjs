import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { whyNoKafka } from "./kafka/provide.mjs";
import { findPgBouncer } from "./pgbouncer.mjs";

const confluent = fileURLToPath(new URL("../test/kafka-confluent/node_modules", import.meta.url));

/** @returns {string[]} one line for each kind of test that this machine can't run */
export function leftOut() {
  const why = whyNoKafka();
  const lines = [];
  if (!findPgBouncer()) {
    lines.push("left out: the tests behind PgBouncer (no pgbouncer here; Debian has a package)");
  }
  if (why !== undefined) lines.push(`left out: the tests on Kafka (${why}; or give KAFKA_BROKERS)`);
  else if (!existsSync(confluent)) {
    lines.push(
      "left out: the tests on Confluent's Kafka client (node scripts/kafka/install-confluent.mjs builds it)",
    );
  }
  return lines;
}
