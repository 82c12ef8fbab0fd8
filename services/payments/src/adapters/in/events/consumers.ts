import type { EventHandlers, EventOutcome } from "idemkit";
import type { PoolClient } from "pg";
import { ledgerHandlers } from "./ledger.ts";
import { notificationHandlers } from "./notifications.ts";

/** One consumer of the service's events. */
export interface EventConsumer {
  /** Part of an event's identity at the inbox: both consumers get every event. Never renamed. */
  readonly consumer: string;
  readonly handlers: EventHandlers<PoolClient>;
  /** How many batches of a process are worth a connection each. */
  readonly concurrency: number;
}

/** Told of what became of an event at a consumer. */
export type OnOutcome = (consumer: string, outcome: EventOutcome) => void;

export const eventConsumers: readonly EventConsumer[] = [
  // Bookings wait for each other in any case.
  { consumer: "ledger", handlers: ledgerHandlers, concurrency: 1 },
  { consumer: "notifications", handlers: notificationHandlers, concurrency: 3 },
];
