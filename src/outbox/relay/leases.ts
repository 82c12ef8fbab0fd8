import { randomUUID } from "node:crypto";

import type { Running } from "../../internal/loop.ts";
import type { Call, PostgresDatabase, Reserved, Result } from "../../postgres/connections.ts";
import { statementOf } from "../../postgres/statement.ts";
import type { StatementName } from "../../postgres/statement.ts";
import { shardCount } from "../shard.ts";
import { channelOf, sharesChanged } from "../wake.ts";
import { fairShare } from "./fair-share.ts";
import type { RelaySettings } from "./options.ts";
import { startPacedLoop } from "./paced-loop.ts";
import type { Fence } from "./store.ts";

/** A shard that is ours until its lease runs out. */
export interface Lease extends Fence {
  /** Aborts when the shard is given up or lost. */
  readonly signal: AbortSignal;
  /** Whether the lease certainly still holds: reckoned from when its last renewal was sent, so never too late. */
  isValid(): boolean;
}

/** The shards of a relay. */
export interface Leases extends Running {
  get(shard: number): Lease | undefined;
  held(): readonly number[];
  /** Forgets a shard without giving it back: it goes to whoever finds its lease expired. */
  abandon(shard: number): void;
  /** Looks at the shares now. */
  poke(): void;
}

/** What the leases need of the rest of a relay. */
export interface LeaseEvents {
  acquired(shards: readonly number[]): void;
  /** Resolves when nothing works on the shard any more. */
  idle(shard: number): Promise<void>;
}

interface HeldLease extends Lease {
  readonly controller: AbortController;
  validUntilMs: number;
}

/** Keeps this relay's fair share of the shards, by one statement a heartbeat on a connection of its own. */
export function startLeases<Tx>(
  database: PostgresDatabase<Tx>,
  settings: RelaySettings,
  { acquired, idle }: LeaseEvents,
): Leases {
  const { leaseMs, capacity, runtime } = settings;
  const owner = randomUUID();
  const leases = new Map<number, HeldLease>();
  const ending = new Set<Promise<void>>();
  const sql = (name: StatementName, values: readonly unknown[]): Call => ({ ...statementOf(name, database.schema), values });
  const connection = reservedConnection(database, leaseMs);

  async function beat(): Promise<void> {
    const sentAtMs = runtime.monotonicMs();
    const mine = [...leases.values()];
    const values = [owner, leaseMs, capacity, mine.map(({ shard }) => shard), mine.map(({ epoch }) => epoch)];
    const { rows } = await connection.run(sql("outbox-heartbeat", values));
    const held = new Set(rows[0]?.["held"] as readonly number[]);
    for (const lease of mine) {
      if (held.has(lease.shard)) lease.validUntilMs = sentAtMs + leaseMs;
      else lose(lease.shard);
    }
    const wanted = fairShare(shardCount, capacity, rows[0]?.["others"] as readonly number[]);
    if (leases.size > wanted) giveBack([...leases.keys()].slice(wanted));
    if (leases.size < wanted) await acquire(wanted - leases.size);
  }

  async function acquire(count: number): Promise<void> {
    const sentAtMs = runtime.monotonicMs();
    const { rows } = await connection.run(sql("outbox-acquire", [owner, leaseMs, count]));
    for (const row of rows) add(row["shard"] as number, String(row["epoch"]), sentAtMs + leaseMs);
    if (rows.length > 0) acquired(rows.map((row) => row["shard"] as number));
    // The others hold more than their share now: they need not find that out at their next heartbeat only.
    if (rows.length < count) announce();
  }

  function add(shard: number, epoch: string, validUntilMs: number): void {
    lose(shard);
    const controller = new AbortController();
    const lease: HeldLease = {
      shard,
      owner,
      epoch,
      controller,
      signal: controller.signal,
      validUntilMs,
      isValid: () => !controller.signal.aborted && runtime.monotonicMs() < lease.validUntilMs,
    };
    leases.set(shard, lease);
  }

  function lose(shard: number): void {
    leases.get(shard)?.controller.abort();
    leases.delete(shard);
  }

  /** Not waited for: the heartbeat of the other shards must not wait for a publish. */
  function giveBack(shards: readonly number[]): void {
    const work = shards.map(async (shard) => {
      leases.delete(shard);
      await idle(shard);
    });
    const done: Promise<void> = Promise.all(work)
      .then(() => database.connections.query(sql("outbox-yield", [owner, [...shards]])))
      .then(announce, () => {}) // they expire
      .finally(() => ending.delete(done));
    ending.add(done);
  }

  function announce(): void {
    if (!database.notify) return;
    const values = [channelOf(database.schema), sharesChanged];
    database.connections.query(sql("outbox-wake", values)).catch(() => {}); // found out at the next heartbeat then
  }

  const loop = startPacedLoop({
    everyMs: settings.heartbeatMs,
    maxRetryMs: Math.min(settings.heartbeatMs, 5000),
    work: beat,
    onError: (error) => settings.logger.error(`idemkit: the relay's heartbeat failed: ${String(error)}`),
    runtime,
  });

  const stop = async (): Promise<void> => {
    await loop.stop();
    await Promise.all(ending);
    for (const shard of leases.keys()) lose(shard);
    const left = await connection.run(sql("outbox-leave", [owner])).catch(() => undefined);
    connection.release();
    if (left !== undefined) announce();
  };
  return {
    get: (shard) => leases.get(shard),
    held: () => [...leases.keys()],
    abandon: lose,
    poke: loop.poke,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

interface ReservedConnection {
  run(call: Call): Promise<Result>;
  release(): void;
}

/** One connection, reserved anew after it failed or gave no answer for the time of a lease. */
function reservedConnection<Tx>({ connections }: PostgresDatabase<Tx>, timeoutMs: number): ReservedConnection {
  let reserved: Reserved | undefined;
  return {
    run: async (call) => {
      const current = (reserved ??= await connections.reserve());
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
      });
      try {
        return await Promise.race([current.run(call), late]);
      } catch (error) {
        reserved = undefined;
        current.release(error instanceof Error ? error : new Error(String(error)));
        throw error;
      } finally {
        clearTimeout(timer);
      }
    },
    release: () => {
      reserved?.release();
      reserved = undefined;
    },
  };
}
