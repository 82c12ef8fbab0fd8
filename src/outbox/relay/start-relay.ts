import type { Running } from "../../internal/loop.ts";
import { backoffMs } from "../../internal/runtime.ts";
import type { PostgresDatabase } from "../../postgres/connections.ts";
import { sharesChanged, shardsOf } from "../wake.ts";
import { startLeases } from "./leases.ts";
import type { Leases } from "./leases.ts";
import { startListener } from "./listener.ts";
import { relaySettings } from "./options.ts";
import type { RelayOptions, RelaySettings } from "./options.ts";
import { startPacedLoop } from "./paced-loop.ts";
import type { PacedLoop } from "./paced-loop.ts";
import { outboxStore } from "./store.ts";
import type { OutboxStore } from "./store.ts";
import { takeTurn } from "./turn.ts";
import type { TurnResult } from "./turn.ts";
import { startWorkers } from "./workers.ts";
import type { After } from "./workers.ts";

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
  const settings = relaySettings(options);
  const { runtime, logger } = settings;
  const relay = shardTurns(outboxStore(database), settings, () => leases);
  const workers = startWorkers({ concurrency: settings.concurrency, turn: relay.turn, look: () => poller.poke(), runtime });
  const leases: Leases = startLeases(database, settings, { acquired: workers.wake, idle: workers.idle });
  const poller: PacedLoop = startPacedLoop({
    everyMs: settings.pollMs,
    maxRetryMs: 5000,
    work: async () => {
      const quiet = leases.held().filter((shard) => !workers.isBusy(shard));
      if (quiet.length > 0) workers.wake(await relay.pending(quiet));
    },
    onError: relay.failed,
    runtime,
  });
  const notified = (payload: string): void => {
    if (payload === sharesChanged) return leases.poke();
    const mask = shardsOf(payload);
    workers.wake(leases.held().filter((shard) => mask === undefined || (mask & (1 << shard)) !== 0));
  };
  const listener =
    settings.notify === undefined
      ? undefined
      : startListener(
          database.schema,
          settings.notify,
          {
            notified,
            connected: poller.poke,
            failed: (error) => logger.error(`idemkit: the relay does not hear notifications: ${String(error)}`),
          },
          runtime,
        );

  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> =>
    (stopped ??= (async () => {
      await Promise.all([listener?.stop(), poller.stop()]);
      await workers.stop();
      await leases.stop();
    })());
  return {
    stats: () => ({ ...relay.counts, shards: leases.held() }),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

interface ShardTurns {
  readonly counts: { published: number; parked: number; failures: number; batches: number };
  turn(shard: number): Promise<After>;
  pending: OutboxStore["pending"];
  failed(error: unknown): void;
}

/** Batches shrink down to this where they fail, or where publishing takes longer than a stop should have to wait. */
const smallBatch = 100;
const slowMs = 1000;
const backoff = { baseMs: 100, maxMs: 5000 };
/** How long a turn may take before its shard is left to others: a connection or a broker that never answers. */
const stuckLeases = 4;

/** What each shard has come to: the size of its next batch, and how often it failed in a row. */
interface ShardState {
  limit: number;
  failures: number;
}

function shardTurns(store: OutboxStore, settings: RelaySettings, leases: () => Leases): ShardTurns {
  const { batchSize, runtime, logger } = settings;
  const counts = { published: 0, parked: 0, failures: 0, batches: 0 };
  const states = new Map<number, ShardState>();
  const smallest = Math.min(smallBatch, batchSize);
  let down = false;

  function failed(error: unknown): void {
    counts.failures += 1;
    if (!down) logger.error(`idemkit: the relay could not publish and goes on trying: ${String(error)}`);
    down = true;
  }

  function count(result: TurnResult): void {
    counts.batches += result.read > 0 ? 1 : 0;
    counts.published += result.published;
    counts.parked += result.parked.length;
    for (const parked of result.parked) {
      logger.error(`idemkit: an event of ${parked.topic} was refused, its key is parked: ${parked.reason}`);
      settings.onParked(parked);
    }
    if (down && result.published > 0) logger.info("idemkit: the relay publishes again");
    if (result.published > 0) down = false;
  }

  function restOf(state: ShardState): After {
    state.failures += 1;
    state.limit = Math.max(smallest, Math.floor(state.limit / 2));
    return { restMs: backoff.baseMs / 2 + backoffMs(state.failures, backoff, runtime.random) };
  }

  async function turn(shard: number): Promise<After> {
    const lease = leases().get(shard);
    if (lease === undefined) return "done";
    const state = states.get(shard) ?? { limit: batchSize, failures: 0 };
    states.set(shard, state);
    if (!lease.isValid()) return { restMs: backoff.baseMs };
    try {
      const work = takeTurn(store, settings, lease, state.limit);
      const result = await within(settings.leaseMs * stuckLeases, work, () => leases().abandon(shard));
      count(result);
      if (result.lost) leases().abandon(shard);
      if (result.lost) return "done";
      if (result.failure !== undefined) {
        failed(result.failure.error);
        return restOf(state);
      }
      state.failures = 0;
      const full = result.read === state.limit;
      if (result.publishMs > slowMs) state.limit = Math.max(smallest, Math.floor(state.limit / 2));
      else if (full) state.limit = Math.min(batchSize, state.limit * 2);
      if (full) return "again";
      return result.read > 0 ? "look" : "done";
    } catch (error) {
      failed(error);
      return restOf(state);
    }
  }

  return { counts, turn, pending: store.pending, failed };
}

async function within<T>(timeoutMs: number, work: Promise<T>, onTimeout: () => void): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      onTimeout();
      reject(new Error(`no answer within ${timeoutMs} ms: the shard is left to others`));
    }, timeoutMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
