import type { EventOutcome } from "idemkit";
import { startedChild } from "./child-process.ts";
import type { Child } from "./child-process.ts";
import { consumerMain, relayMain } from "./places.ts";

/** The processes that events go through. */
export interface EventProcesses {
  /** How often a consumer had this outcome. */
  count(consumer: string, outcome: EventOutcome): number;
  startRelay(): Promise<void>;
  stopRelay(): Promise<void>;
  /** SIGKILL. */
  killRelay(): Promise<void>;
  stop(): Promise<void>;
}

export interface EventProcessesOptions {
  readonly connectionString: string;
  readonly logLevel: string;
  /** Where Kafka is; without it the relay's process has the consumers. */
  readonly brokers: string | undefined;
}

/** Short, so that whoever watches doesn't wait long for another relay to take over from one that was killed. */
const RELAY_LEASE_MS = 3000;

/** Starts the relay and, with Kafka, the consumers in a process of their own. */
export const startEventProcesses = async (options: EventProcessesOptions): Promise<EventProcesses> => {
  const { connectionString, logLevel, brokers } = options;
  const outcomes = new Map<string, number>();
  const env = {
    DATABASE_URL: connectionString,
    LOG_LEVEL: logLevel,
    KAFKA_BROKERS: brokers ?? "",
    RELAY_LEASE_MS: String(RELAY_LEASE_MS),
  };
  const start = async (script: string): Promise<Child> => {
    const { child, started } = startedChild(script, env, (message) => {
      const { consumer, outcome } = message as { readonly consumer?: string; readonly outcome?: string };
      const name = `${consumer} ${outcome}`;
      outcomes.set(name, (outcomes.get(name) ?? 0) + 1);
    });
    await started;
    return child;
  };
  const consumers = brokers === undefined ? undefined : await start(consumerMain);
  let relay = await start(relayMain);
  return {
    count: (consumer, outcome) => outcomes.get(`${consumer} ${outcome}`) ?? 0,
    startRelay: async () => {
      relay = await start(relayMain);
    },
    stopRelay: () => relay.stop(),
    killRelay: () => relay.kill(),
    stop: async () => {
      await relay.stop();
      await consumers?.stop();
    },
  };
};
