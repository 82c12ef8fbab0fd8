import { jsonCodec } from "../core/codec.ts";
import type { Stored } from "../core/codec.ts";
import { IdemkitError } from "../errors.ts";
import type { Call, PostgresDatabase, Session } from "../postgres/connections.ts";
import { statementOf } from "../postgres/statement.ts";
import type { EffectRow } from "./effect.ts";
import type { Lease, LeaseStore } from "./lease-store.ts";

/** The transactions of a handler of the external mode. */
export interface Phases<Tx> {
  /**
   * The final writes. The transaction stays open until the handler's answer is complete and commits together with it,
   * under the compare-and-set on the attempt. At most one, after the last effect.
   */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /**
   * Writes that must be durable before a later effect, such as a pending payment. They commit with their result in the
   * ledger, so that an attempt after a crash gets the result instead of writing again.
   */
  phase<T>(name: string, work: (tx: Tx) => Promise<T>): Promise<Stored<T>>;
}

/** The transactions of one attempt, and what its end needs of them. */
export interface OpenPhases<Tx> extends Phases<Tx> {
  /** Whether the final transaction is open. */
  isOpen(): boolean;
  /** Commits the final writes, where there are any, with the attempt's end. */
  commit(finish: Call): Promise<void>;
  rollback(): Promise<void>;
}

/** What {@link phases} needs of its attempt. */
export interface PhasesSettings<Tx> {
  readonly database: PostgresDatabase<Tx>;
  readonly lease: Lease;
  readonly store: LeaseStore;
  readonly ledger: readonly EffectRow[];
  readonly idleTimeoutMs: number;
  readonly lockTimeoutMs: number;
}

const results = jsonCodec<unknown>();

/** The transactions of one attempt. */
export function phases<Tx>(settings: PhasesSettings<Tx>): OpenPhases<Tx> {
  const { database, lease, store, ledger } = settings;
  const done = new Map(ledger.filter(({ state }) => state === "done").map((row) => [row.name, row.result]));
  const names = new Set<string>();
  let final: Session<Tx> | undefined;

  async function open(): Promise<Session<Tx>> {
    if (final !== undefined) throw new IdemkitError("effect_in_transaction");
    const values = [String(settings.idleTimeoutMs), String(settings.lockTimeoutMs)];
    const { session } = await database.connections.begin({
      ...statementOf("phase-open", database.schema),
      values,
    });
    return session;
  }

  return {
    isOpen: () => final !== undefined,
    transaction: async (work) => {
      const session = await open();
      final = session;
      try {
        return await work(session.tx);
      } catch (error) {
        final = undefined;
        await session.rollback();
        throw error;
      }
    },
    phase: async <T>(name: string, work: (tx: Tx) => Promise<T>) => {
      if (names.has(name)) throw new IdemkitError("effect_name_reused", { details: { at: name } });
      names.add(name);
      const before = done.get(name);
      if (before !== undefined) return stored<T>(before);
      const session = await open();
      try {
        const bytes = results.encode(await work(session.tx));
        await store.phase(session, lease, name, bytes);
        await session.commit();
        return stored<T>(bytes);
      } catch (error) {
        await session.rollback();
        throw error;
      }
    },
    commit: async (finish) => {
      await (final === undefined ? database.connections.query(finish) : final.commit(finish));
    },
    rollback: async () => {
      await final?.rollback();
      final = undefined;
    },
  };
}

function stored<T>(bytes: Uint8Array | null): Stored<T> {
  return results.decode(bytes ?? new Uint8Array(0)) as Stored<T>;
}
