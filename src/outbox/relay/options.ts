import type { Publisher } from "../../core/event.ts";
import { harmless, harmlessLogger } from "../../internal/harmless.ts";
import { checkInteger, checkNames, invalid } from "../../internal/options.ts";
import { systemRuntime } from "../../internal/runtime.ts";
import type { Runtime } from "../../internal/runtime.ts";
import { shardCount } from "../shard.ts";
import type { ListenOptions } from "./listener.ts";
import type { ParkedKey } from "./parked-key.ts";

/** Where a relay reports to; `console` fits. */
export interface RelayLogger {
  info(message: string): void;
  error(message: string): void;
}

/** Settings of `startRelay`. */
export interface RelayOptions {
  /** Sends the events on. It stays its owner's: stop the relay first, then dispose it. */
  readonly publisher: Publisher;
  /**
   * The most of the sixteen shards that this relay holds; several relays share them out fairly.
   * @defaultValue 16
   */
  readonly shards?: number;
  /**
   * How many shards are worked on at the same time. Each uses a connection of the pool while it reads and deletes, none
   * while it publishes; one more is kept for the heartbeat.
   * @defaultValue 4
   */
  readonly concurrency?: number;
  /**
   * The most events of one batch; a batch also ends at 8 MB. Batches shrink where publishing one fails or takes longer
   * than a second, and grow again.
   * @defaultValue 5_000: large batches keep the rate up while a held-open snapshot slows each read down
   */
  readonly batchSize?: number;
  /**
   * How long a shard stays with a relay that gives no sign of life.
   * @defaultValue 30_000
   */
  readonly leaseMs?: number;
  /**
   * Pause between two renewals of all leases; at most half of `leaseMs`. A new relay gets its share, and a dead one is
   * noticed, at the next heartbeat of the others.
   * @defaultValue a third of `leaseMs`
   */
  readonly heartbeatMs?: number;
  /**
   * Pause between two looks for events that no notification announced.
   * @defaultValue 1_000 with `notify`, else 100
   */
  readonly pollMs?: number;
  /** How to listen for notifications, on a direct connection. @defaultValue none: the relay polls */
  readonly notify?: ListenOptions;
  /** Told of each key that was parked, because the broker refused its next event for good. */
  readonly onParked?: (parked: ParkedKey) => void;
  /** @defaultValue `console` */
  readonly logger?: RelayLogger;
}

/** Settings with their defaults. */
export interface RelaySettings {
  readonly publisher: Publisher;
  readonly capacity: number;
  readonly concurrency: number;
  readonly batchSize: number;
  readonly leaseMs: number;
  readonly heartbeatMs: number;
  readonly pollMs: number;
  readonly notify: ListenOptions | undefined;
  readonly onParked: (parked: ParkedKey) => void;
  readonly logger: RelayLogger;
  readonly runtime: Runtime;
}

const optionNames = [
  "publisher",
  "shards",
  "concurrency",
  "batchSize",
  "leaseMs",
  "heartbeatMs",
  "pollMs",
  "notify",
  "onParked",
  "logger",
] as const;

/** @throws IdemkitError `option_invalid`. */
export function relaySettings(options: RelayOptions): RelaySettings {
  checkNames("startRelay", options, optionNames);
  const { publisher, notify } = options;
  if (typeof publisher?.publish !== "function") throw invalid("publisher", "must be given");
  const leaseMs = checkInteger("leaseMs", options.leaseMs ?? 30_000, 100, 3_600_000);
  const heartbeatMs = checkInteger(
    "heartbeatMs",
    options.heartbeatMs ?? Math.floor(leaseMs / 3),
    10,
    leaseMs / 2,
  );
  const pollMs = options.pollMs ?? (notify === undefined ? 100 : 1000);
  return {
    publisher,
    capacity: checkInteger("shards", options.shards ?? shardCount, 1, shardCount),
    concurrency: checkInteger("concurrency", options.concurrency ?? 4, 1, shardCount),
    batchSize: checkInteger("batchSize", options.batchSize ?? 5000, 1, 10_000),
    leaseMs,
    heartbeatMs,
    pollMs: checkInteger("pollMs", pollMs, 10, 600_000),
    notify,
    onParked: harmless(options.onParked ?? (() => {})),
    logger: harmlessLogger(options.logger ?? console),
    runtime: systemRuntime,
  };
}
