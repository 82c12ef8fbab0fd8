import { IdemkitError } from "../errors.ts";
import { checkInteger, checkNames, checkOneOf, invalid } from "../internal/options.ts";
import { ownAggregate, unitStateOf } from "./unit.ts";
import { judge, lockVersions, saveVersions } from "./versions.ts";

/** Which version of what an event is about. */
export interface NewerOptions {
  /** What is versioned, such as `account/42`; each consumer keeps its own. Its events must share a key. */
  readonly aggregate: string;
  /** The version that the event brings, mostly its `aggregateVersion`. */
  readonly version: number;
  /**
   * What becomes of a version ahead of the next one: `"accept"` applies it, and those it overtook are stale; `"hold"`
   * parks the event until the missing ones have been applied, and then runs its handler again.
   */
  readonly onGap: "hold" | "accept";
  /**
   * The version that an aggregate begins with, for `onGap: "hold"`; `"any"` accepts the first one seen.
   * @defaultValue 1
   */
  readonly firstVersion?: number | "any";
}

/** What `applyIfNewer` did. */
export type Newer = "applied" | "stale" | "held";

/**
 * Runs `apply` if the version is newer than the last one that this consumer applied (event.version > current_version);
 * the version is recorded in the same transaction, and its row is locked until that ends. Do all of the handler's work
 * for the aggregate inside `apply`: what is done outside of it commits also for stale and held events, and again when a
 * held one is applied. The event's outcome is `stale` or `parked` accordingly.
 * @param tx - what a handler of an inbox or of a webhook was given
 * @throws IdemkitError `inbox_transaction_unknown`, `option_invalid`.
 */
export async function applyIfNewer(tx: object, options: NewerOptions, apply: () => unknown): Promise<Newer> {
  const state = unitStateOf(tx);
  const current = state?.current;
  if (state === undefined || current === undefined) throw new IdemkitError("inbox_transaction_unknown");
  const { aggregate, version, onGap, firstVersion = 1 } = checked(options);
  const name = `${ownAggregate}${aggregate}`;
  const { inbox, session } = state;
  const row = (await lockVersions(inbox, session, [name])).get(name) ?? { version: null, held: false };
  const verdict = judge(version, row, { onGap, firstVersion });
  current.verdict = verdict;
  if (verdict === "stale") return "stale";
  if (verdict === "gap") {
    current.behind = { aggregate: name, version };
    await session.run(saveVersions(inbox, new Map([[name, { ...row, held: true }]])));
    return "held";
  }
  await session.run(saveVersions(inbox, new Map([[name, { ...row, version }]])));
  await apply();
  if (row.held) state.filled.add(name);
  return "applied";
}

function checked(options: NewerOptions): NewerOptions {
  checkNames("applyIfNewer", options, ["aggregate", "version", "onGap", "firstVersion"]);
  const { aggregate, version, onGap, firstVersion } = options;
  if (typeof aggregate !== "string" || aggregate === "" || !aggregate.isWellFormed()) {
    throw invalid("aggregate", "must be a text");
  }
  checkInteger("version", version, 0, Number.MAX_SAFE_INTEGER);
  checkOneOf("onGap", onGap, ["hold", "accept"]);
  if (firstVersion !== undefined && firstVersion !== "any") {
    checkInteger("firstVersion", firstVersion, 0, Number.MAX_SAFE_INTEGER);
  }
  return options;
}
