import { integer, oneOf, optional, required } from "./config.ts";
import type { Environment } from "./config.ts";

/** What a process that relays or consumes events needs to know. */
export interface EventConfig {
  readonly databaseUrl: string;
  readonly poolSize: number;
  readonly logLevel: string;
  /** Without brokers the relay hands events to the consumers in its own process. */
  readonly kafkaBrokers: readonly string[] | undefined;
  /** How long a part of the outbox stays with a relay that gives no sign of life. */
  readonly relayLeaseMs: number;
}

const LOG_LEVELS = ["fatal", "error", "warn", "info", "debug", "trace", "silent"];

/**
 * Reads `DATABASE_URL`, which must be there, `POOL_SIZE` (10), `LOG_LEVEL` (info), `KAFKA_BROKERS` (host:port, and commas
 * between several) and `RELAY_LEASE_MS` (30000).
 * @throws Error naming the variable that is missing or wrong
 */
export const readEventConfig = (environment: Environment): EventConfig => ({
  databaseUrl: required(environment, "DATABASE_URL"),
  // The relay takes five at most, and the consumers four beside it.
  poolSize: integer(environment, "POOL_SIZE", { fallback: 10, min: 9, max: 1000 }),
  logLevel: oneOf(environment, "LOG_LEVEL", LOG_LEVELS, "info"),
  kafkaBrokers: optional(environment, "KAFKA_BROKERS")
    ?.split(",")
    .map((broker) => broker.trim()),
  relayLeaseMs: integer(environment, "RELAY_LEASE_MS", { fallback: 30_000, min: 300, max: 3_600_000 }),
});
