import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { findChromium } from "./chromium.mjs";
import { whyNoKafka } from "./kafka/provide.mjs";
import { findPgBouncer } from "./pgbouncer.mjs";

const confluent = fileURLToPath(new URL("../test/kafka-confluent/node_modules", import.meta.url));

/**
 * A line that begins with `left out:` fails CI, where everything can be had; the others only inform.
 *
 * @returns {string[]} one line for each kind of test that can't run here
 */
export function leftOut() {
  const lines = [];
  if (!findPgBouncer()) {
    lines.push("left out: the tests behind PgBouncer (no pgbouncer here; Debian has a package)");
  }
  const why = whyNoKafka();
  if (why !== undefined) lines.push(`left out: the tests on Kafka (${why}; or give KAFKA_BROKERS)`);
  else if (!existsSync(confluent)) {
    lines.push(
      "left out: the tests on Confluent's Kafka client (node scripts/kafka/install-confluent.mjs builds it)",
    );
  }
  if (!findChromium()) {
    lines.push("left out: the client in a browser (no chromium here; Debian has a package)");
  }
  if (process.getuid?.() !== 0) {
    lines.push("not for this user: the test of a folder that only root may enter");
  }
  return lines;
}
