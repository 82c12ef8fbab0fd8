import type { Running } from "../../internal/loop.ts";
import type { PostgresDatabase } from "../../postgres/connections.ts";
import { checkPostgresDatabase } from "../../postgres/database.ts";
import { sharesChanged, shardsOf } from "../wake.ts";
import { startLeases } from "./leases.ts";
import type { Leases } from "./leases.ts";
import { startListener } from "./listener.ts";
import { relaySettings } from "./options.ts";
import type { RelayOptions } from "./options.ts";
import { startPacedLoop } from "./paced-loop.ts";
import type { PacedLoop } from "./paced-loop.ts";
import { shardTurns } from "./shard-turns.ts";
import { outboxStore } from "./store.ts";
import { newTally } from "./tally.ts";
import { startWorkers } from "./workers.ts";

/** What a relay has done since it was started. */
export interface RelayStats {
  /** Events that the broker acknowledged and that left the outbox. */
  readonly published: number;
  /** Keys parked. */
  readonly parked: number;
  /** Turns in which something failed and was left for another try. */
  readonly failures: number;
  readonly batches: number;
  /** The shards held now. */
  readonly shards: readonly number[];
}

/** A relay at work. */
export interface Relay extends Running {
  stats(): RelayStats;
}

/**
 * Starts a relay: it publishes the events of committed transactions, at least once and within each key in the order of
 * the commits, and deletes what the broker acknowledged. Run it in as many processes as you like: they share the shards
 * by leases, and take over those of a process that died. It outlives outages of the database and of the broker.
 * Stop it before the pool ends and the publisher is disposed.
 * @throws IdemkitError `option_invalid`.
 */
export function startRelay<Tx>(database: PostgresDatabase<Tx>, options: RelayOptions): Relay {
  checkPostgresDatabase(database);
  const settings = relaySettings(options);
  const { runtime, logger } = settings;
  const store = outboxStore(database);
  const tally = newTally(settings);
  const workers = startWorkers({
    concurrency: settings.concurrency,
    turn: shardTurns(store, settings, tally, () => leases),
    look: () => poller.poke(),
    runtime,
  });
  const leases: Leases = startLeases(database, settings, { acquired: workers.wake, idle: workers.idle });
  const poller: PacedLoop = startPacedLoop({
    everyMs: settings.pollMs,
    maxRetryMs: 5000,
    work: async () => {
      const quiet = leases.held().filter((shard) => !workers.isBusy(shard));
      if (quiet.length > 0) workers.wake(await store.pending(quiet));
    },
    onError: tally.failed,
    runtime,
  });
  const listener = startListener(database.schema, settings.notify, runtime, {
    notified: (payload) => {
      if (payload === sharesChanged) leases.poke();
      else workers.wake(shardsOf(payload).filter((shard) => leases.get(shard) !== undefined));
    },
    connected: poller.poke,
    failed: (error) => logger.error(`idemkit: the relay does not hear notifications: ${String(error)}`),
  });

  async function end(): Promise<void> {
    await Promise.all([listener?.stop(), poller.stop()]);
    // A publisher that hears the signal gives up; what it leaves is sent again by the next relay.
    const late = setTimeout(() => leases.held().forEach(leases.abandon), stopGraceMs);
    await workers.stop();
    clearTimeout(late);
    await leases.stop();
  }

  let ended: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    ended ??= end();
    await ended;
  };
  return { stats: () => ({ ...tally.counts, shards: leases.held() }), stop, [Symbol.asyncDispose]: stop };
}

/** How long a stop waits for publishes in flight before it aborts their signal. */
const stopGraceMs = 5000;
