import type { Execution } from "../core/execution.ts";
import type { Attempt, RecordStore } from "../core/ports.ts";

/**
 * The same execution without a record, for a request that has no key where keys are optional: the handler's transaction
 * commits or rolls back by the same rules, and nothing is stored.
 */
export function unrecorded<Tx>(execution: Execution<Tx>): Execution<Tx> {
  const { database } = execution;
  // Without a record nobody can tell what became of a COMMIT whose answer was lost: such a run is not repeated.
  let committing = false;
  const watched = (attempt: Attempt<Tx>): Attempt<Tx> => ({
    tx: attempt.tx,
    lost: () => attempt.lost(),
    failedBy: (error) => attempt.failedBy(error),
    rollback: () => attempt.rollback(),
    finish: async (record) => {
      committing = true;
      try {
        return await attempt.finish(record);
      } catch (error) {
        committing = database.classify(error) === "unavailable";
        throw error;
      }
    },
  });
  const records: RecordStore<Tx> = {
    ...database.unrecorded,
    claim: async (identity, settings) => {
      const claim = await database.unrecorded.claim(identity, settings);
      return claim.claim === "claimed" ? { claim: "claimed", attempt: watched(claim.attempt) } : claim;
    },
  };
  return {
    ...execution,
    database: { ...database, records },
    canRunAgain: () => !committing && execution.canRunAgain?.() !== false,
  };
}
