import type { Call, Session } from "../postgres/connections.ts";
import { consumerCall } from "./internals.ts";
import type { Internals } from "./internals.ts";

/** What a version is to what has been applied of its aggregate. */
export type VersionVerdict = "apply" | "stale" | "gap";

/** How a version ahead of the next one is taken, and where an aggregate begins. */
export interface VersionPolicy {
  readonly onGap: "hold" | "accept";
  readonly firstVersion: number | "any";
}

/** The row of one aggregate, locked by the transaction. */
export interface AppliedVersion {
  /** The version that was applied last; `null` before the first. */
  version: number | null;
  /** Whether events are parked behind a gap. */
  held: boolean;
}

/** Compares a version with what was applied: the guard of eventual consistency, "event.version > current_version". */
export function judge(
  version: number,
  { version: current }: AppliedVersion,
  policy: VersionPolicy,
): VersionVerdict {
  if (current !== null && version <= current) return "stale";
  if (policy.onGap === "accept") return "apply";
  if (current !== null) return version === current + 1 ? "apply" : "gap";
  if (policy.firstVersion === "any" || version === policy.firstVersion) return "apply";
  return version < policy.firstVersion ? "stale" : "gap";
}

/**
 * Locks the rows of the aggregates until the transaction ends, in the order of their names; makes those that are
 * missing. Who decides by a version holds the lock, so that a decision can't be overtaken.
 */
export async function lockVersions<Tx>(
  inbox: Internals<Tx>,
  session: Session<Tx>,
  aggregates: readonly string[],
): Promise<Map<string, AppliedVersion>> {
  const wanted = [...new Set(aggregates)];
  const locked = await readVersions(inbox, session, wanted);
  const missing = wanted.filter((aggregate) => !locked.has(aggregate));
  if (missing.length === 0) return locked;
  await session.run(consumerCall(inbox, "inbox-version-seed", missing));
  for (const [aggregate, row] of await readVersions(inbox, session, missing)) locked.set(aggregate, row);
  return locked;
}

async function readVersions<Tx>(
  inbox: Internals<Tx>,
  session: Session<Tx>,
  aggregates: readonly string[],
): Promise<Map<string, AppliedVersion>> {
  const { rows } = await session.run(consumerCall(inbox, "inbox-version-lock", aggregates));
  return new Map(
    rows.map(({ aggregate, version, held }) => [
      aggregate as string,
      { version: version === null ? null : Number(version), held: held as boolean },
    ]),
  );
}

/** The statement that writes the rows back. */
export function saveVersions<Tx>(inbox: Internals<Tx>, changed: ReadonlyMap<string, AppliedVersion>): Call {
  const rows = [...changed.values()];
  const versions = rows.map(({ version }) => version);
  const held = rows.map((row) => row.held);
  return consumerCall(inbox, "inbox-version-save", [...changed.keys()], versions, held);
}
