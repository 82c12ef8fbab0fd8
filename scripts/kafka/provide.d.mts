import type { Broker } from "./broker.mjs";

/** Why tests on Kafka can't run here; nothing where they can. */
export function whyNoKafka(): string | undefined;

/** Why no broker can be started here; nothing where one can. */
export function whyNoBroker(): string | undefined;

/** A broker of one's own, to stop and kill. */
export function ownBroker(): Promise<Broker>;

/** A broker to share: the one of `KAFKA_BROKERS`, else one of our own that `close` removes. */
export function sharedBroker(): Promise<{ brokers: string; close: () => Promise<void> }>;
