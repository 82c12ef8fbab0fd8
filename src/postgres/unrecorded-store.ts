import { lockOf } from "../core/identity.ts";
import type { RecordStore } from "../core/ports.ts";
import type { Connections } from "./connections.ts";
import { classify, sqlstateOf } from "./sqlstate.ts";
import { statementOf } from "./statement.ts";

/**
 * The record store's transactions without records: for a call that has no key where keys are optional. The identity is
 * a fresh one, so that the lock, which sets the transaction's bounds in the same statement, is never contended.
 */
export function unrecordedStore<Tx>(connections: Connections<Tx>, schema: string): RecordStore<Tx> {
  const opening = statementOf("claim-unread", schema);
  return {
    find: async () => undefined,
    claim: async (identity, { operationId, idleTimeoutMs, lockTimeoutMs, isolation }) => {
      const values = [
        lockOf(schema, identity).toString(),
        String(idleTimeoutMs),
        operationId,
        String(lockTimeoutMs),
      ];
      const { session } = await connections.begin({ ...opening, values }, isolation);
      return {
        claim: "claimed",
        attempt: {
          tx: session.tx,
          lost: () => session.broken,
          failedBy: (error) =>
            Boolean(session.broken) || (sqlstateOf(error) !== undefined && classify(error) === "unavailable"),
          rollback: session.rollback,
          finish: async () => {
            await session.commit();
            return "committed";
          },
        },
      };
    },
    refuse: async () => "committed",
  };
}
