import { randomUUID } from "node:crypto";

import type { Running } from "../../internal/loop.ts";
import type { Call, PostgresDatabase } from "../../postgres/connections.ts";
import { statementOf } from "../../postgres/statement.ts";
import type { StatementName } from "../../postgres/statement.ts";
import { shardCount } from "../shard.ts";
import { channelOf, sharesChanged } from "../wake.ts";
import { fairShare } from "./fair-share.ts";
import { leaseTable } from "./lease-table.ts";
import type { Lease, LeaseTable } from "./lease-table.ts";
import type { RelaySettings } from "./options.ts";
import { startPacedLoop } from "./paced-loop.ts";
import { reservedConnection } from "./reserved-connection.ts";
import type { ReservedConnection } from "./reserved-connection.ts";

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

/** Keeps this relay's fair share of the shards, by one statement a heartbeat on a connection of its own. */
export function startLeases<Tx>(
  database: PostgresDatabase<Tx>,
  settings: RelaySettings,
  { acquired, idle }: LeaseEvents,
): Leases {
  const leases = leaseTable(settings.runtime);
  const connection = reservedConnection(database.connections, settings.leaseMs);
  const statements = leaseStatements(database, connection, settings);
  const givenBack = new Set<Promise<void>>();
  let toldOf: string | undefined;

  async function beat(): Promise<void> {
    const { wanted, others } = await statements.renew(leases);
    const held = leases.all();
    const surplus = held.slice(wanted).map(({ shard }) => shard);
    if (surplus.length > 0) giveBack(surplus);
    if (held.length >= wanted) return;
    const taken = await statements.acquire(leases, wanted - held.length);
    acquired(taken);
    tellOf(held.length + taken.length < wanted ? `${wanted}/${others.join(",")}` : undefined);
  }

  /**
   * Others hold more than their share now, or the shares don't divide: they are told once, since each of them looks at its
   * shares then, and would tell of its own shortfall again.
   */
  function tellOf(shortfall: string | undefined): void {
    if (shortfall !== undefined && shortfall !== toldOf) statements.announce();
    toldOf = shortfall;
  }

  /** Not waited for: the heartbeat of the other shards must not wait for a publish. */
  function giveBack(shards: readonly number[]): void {
    for (const shard of shards) leases.drop(shard);
    const done = Promise.all(shards.map(idle))
      .then(() => statements.yield(shards))
      .catch(() => {}) // they expire
      .finally(() => givenBack.delete(done));
    givenBack.add(done);
  }

  const loop = startPacedLoop({
    everyMs: settings.heartbeatMs,
    maxRetryMs: Math.min(settings.heartbeatMs, 5000),
    work: beat,
    onError: (error) => settings.logger.error(`idemkit: the relay's heartbeat failed: ${String(error)}`),
    runtime: settings.runtime,
  });

  const stop = async (): Promise<void> => {
    await loop.stop();
    await Promise.all(givenBack);
    for (const { shard } of leases.all()) leases.lose(shard);
    await statements.leave().catch(() => {}); // they expire
    connection.release();
  };
  return {
    get: leases.get,
    held: () => leases.all().map(({ shard }) => shard),
    abandon: leases.lose,
    poke: loop.poke,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

interface LeaseStatements {
  /** Renews every lease and drops those that are lost; returns how many shards this relay should hold beside the others. */
  renew(leases: LeaseTable): Promise<{ readonly wanted: number; readonly others: readonly number[] }>;
  /** Takes leases that are free; returns their shards. */
  acquire(leases: LeaseTable, most: number): Promise<readonly number[]>;
  /** The other relays look at the shares now, and not at their next heartbeat only. */
  announce(): void;
  yield(shards: readonly number[]): Promise<void>;
  leave(): Promise<void>;
}

function leaseStatements<Tx>(
  { connections, schema, notify }: PostgresDatabase<Tx>,
  connection: ReservedConnection,
  { leaseMs, capacity, runtime }: RelaySettings,
): LeaseStatements {
  const owner = randomUUID();
  const call = (name: StatementName, ...values: readonly unknown[]): Call => ({
    ...statementOf(name, schema),
    values,
  });

  function announce(): void {
    if (!notify) return;
    connections.query(call("outbox-wake", channelOf(schema), sharesChanged)).catch(() => {});
  }

  return {
    renew: async (leases) => {
      const validUntilMs = runtime.monotonicMs() + leaseMs;
      const mine = leases.all();
      const places = [mine.map(({ shard }) => shard), mine.map(({ epoch }) => epoch)];
      const { rows } = await connection.run(call("outbox-heartbeat", owner, leaseMs, capacity, ...places));
      const held = new Set(rows[0]?.["held"] as readonly number[]);
      for (const { shard } of mine) {
        if (held.has(shard)) leases.renew(shard, validUntilMs);
        else leases.lose(shard);
      }
      const others = rows[0]?.["others"] as readonly number[];
      return { wanted: fairShare(shardCount, capacity, others), others };
    },
    acquire: async (leases, most) => {
      const validUntilMs = runtime.monotonicMs() + leaseMs;
      const { rows } = await connection.run(call("outbox-acquire", owner, leaseMs, most));
      const fences = rows.map((row) => ({
        shard: row["shard"] as number,
        owner,
        epoch: String(row["epoch"]),
      }));
      for (const fence of fences) leases.add(fence, validUntilMs);
      return fences.map(({ shard }) => shard);
    },
    announce,
    yield: async (shards) => {
      await connections.query(call("outbox-yield", owner, [...shards]));
      announce();
    },
    leave: async () => {
      await connection.run(call("outbox-leave", owner));
      announce();
    },
  };
}
