import { createInbox, inProcessPublisher } from "idemkit";
import type { PostgresDatabase, Publisher } from "idemkit";
import type { PoolClient } from "pg";
import { eventConsumers } from "./consumers.ts";
import type { OnOutcome } from "./consumers.ts";

/** For each shard of the outbox that the relay works on, four at the same time: each takes a connection. */
const KEYS_AT_ONCE = 1;

/** Events go from the relay straight to the consumers, at least once: enough for one service without a broker. */
export const inProcessConsumers = (database: PostgresDatabase<PoolClient>, onOutcome: OnOutcome): Publisher =>
  inProcessPublisher(
    eventConsumers.map(({ consumer, handlers }) => {
      const inbox = createInbox({ database, consumer }, handlers);
      return async (event, options) => onOutcome(consumer, await inbox.process(event, options));
    }),
    { concurrency: KEYS_AT_ONCE },
  );
