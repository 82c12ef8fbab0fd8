import type { Connections, PostgresDatabase, Session } from "../postgres/connections.ts";
import { postgresDatabase } from "../postgres/database.ts";

/**
 * The durable steps of a command or of an event's delivery, in order. Between `before-finish` and `before-commit` lies the insert of
 * a command's record; an event's is in the claim. A handler's own writes are done at `before-finish`.
 */
export type CrashPoint = "before-claim" | "after-claim" | "before-finish" | "before-commit" | "after-commit";

/** How the opening statements are prepared. */
const claim = /^idemkit-(?:inbox-)?claim/;

/**
 * The same database, which stops at every durable step: `reached` may kill the process, throw, or wait for
 * a test to go on. For tests; the steps that are one flight otherwise are taken one by one.
 */
export function withCrashPoints<Tx>(
  database: PostgresDatabase<Tx>,
  reached: (point: CrashPoint) => Promise<void> | void,
): PostgresDatabase<Tx> {
  const { connections, schema } = database;
  const stepping: Connections<Tx> = {
    query: connections.query,
    reserve: connections.reserve,
    begin: async (first, isolation) => {
      if (!claim.test(first.name ?? "")) return connections.begin(first, isolation);
      await reached("before-claim");
      const begun = await connections.begin(first, isolation);
      await reached("after-claim");
      return { first: begun.first, session: stepped(begun.session, reached) };
    },
  };
  return postgresDatabase(stepping, schema, { notify: database.notify });
}

function stepped<Tx>(
  session: Session<Tx>,
  reached: (point: CrashPoint) => Promise<void> | void,
): Session<Tx> {
  return {
    tx: session.tx,
    get broken() {
      return session.broken;
    },
    run: session.run,
    rollback: session.rollback,
    commit: async (...calls) => {
      await reached("before-finish");
      try {
        for (const call of calls) await session.run(call);
      } catch (error) {
        await session.rollback();
        throw error;
      }
      await reached("before-commit");
      await session.commit();
      await reached("after-commit");
    },
  };
}

/** Ends this process as a power cut would: nothing is flushed, no handler runs. */
export function crash(): never {
  process.kill(process.pid, "SIGKILL");
  throw new Error("SIGKILL was not delivered");
}
