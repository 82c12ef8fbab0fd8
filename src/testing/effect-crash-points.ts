import type { Call, Connections, PostgresDatabase, Session } from "../postgres/connections.ts";
import { postgresDatabase } from "../postgres/database.ts";
import type { StatementName } from "../postgres/statement.ts";

/**
 * The durable steps of an operation of the external mode, and of a saga's runner: the claim, a phase or local step, a call's
 * intent and its result, and the end; `release` and `uncertain` are its other ends.
 */
export type EffectStep = "claim" | "phase" | "intent" | "result" | "completion" | "release" | "uncertain";

/** `after-intent` is before the call, and `before-result` after it. */
export type EffectCrashPoint = `${"before" | "after"}-${EffectStep}`;

const stepsByStatement: Partial<Record<StatementName, EffectStep>> = {
  "lease-claim": "claim",
  "effect-phase": "phase",
  "effect-intend": "intent",
  "effect-end": "result",
  "lease-finish": "completion",
  "lease-release": "release",
  "lease-uncertain": "uncertain",
  "saga-claim": "claim",
  "saga-step-record": "phase",
  "saga-step-intend": "intent",
  "saga-step-end": "result",
  "saga-move": "completion",
};

type Reached = (point: EffectCrashPoint) => Promise<void> | void;

/**
 * The same database, which stops before and after every durable step of an operation that calls other systems, and of a saga:
 * `reached` may kill the process, throw, or wait for a test to go on. For tests. A claim that found nothing to do has no
 * `after-claim`.
 */
export function withEffectCrashPoints<Tx>(
  database: PostgresDatabase<Tx>,
  reached: Reached,
): PostgresDatabase<Tx> {
  const { connections, schema } = database;
  const stepping: Connections<Tx> = {
    reserve: connections.reserve,
    query: async (call) => {
      const step = stepOf(call);
      if (step === undefined) return connections.query(call);
      await reached(`before-${step}`);
      const result = await connections.query(call);
      if (step !== "claim" || result.rows.length > 0) await reached(`after-${step}`);
      return result;
    },
    begin: async (first, isolation) => {
      const begun = await connections.begin(first, isolation);
      return { first: begun.first, session: stepped(begun.session, reached) };
    },
  };
  return postgresDatabase(stepping, schema);
}

/** What a transaction records becomes durable with its COMMIT. */
function stepped<Tx>(session: Session<Tx>, reached: Reached): Session<Tx> {
  let recorded: EffectStep | undefined;
  return {
    tx: session.tx,
    get broken() {
      return session.broken;
    },
    run: (call) => {
      recorded ??= stepOf(call);
      return session.run(call);
    },
    rollback: session.rollback,
    commit: async (...calls) => {
      const step = calls.map(stepOf).find((each) => each !== undefined) ?? recorded;
      if (step === undefined) return session.commit(...calls);
      await reached(`before-${step}`);
      await session.commit(...calls);
      await reached(`after-${step}`);
    },
  };
}

/** By the name that the statement is prepared under. */
function stepOf({ name = "" }: Call): EffectStep | undefined {
  const [, statement = ""] = /^idemkit-([a-z-]+)-[\da-f]{12}$/.exec(name) ?? [];
  return stepsByStatement[statement as StatementName];
}
