import { whyNoKafka } from "./kafka/provide.mjs";
import { findPgBouncer } from "./pgbouncer.mjs";

/** @returns {string[]} one line for each kind of test that this machine can't run */
export function leftOut() {
  const why = whyNoKafka();
  return [
    ...(findPgBouncer() ? [] : ["left out: the tests behind PgBouncer (no pgbouncer here; Debian has a package)"]),
    ...(why === undefined ? [] : [`left out: the tests on Kafka (${why}; or give KAFKA_BROKERS)`]),
  ];
}
