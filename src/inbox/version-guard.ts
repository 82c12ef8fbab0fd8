import type { EventMessage } from "../core/event.ts";
import type { Call, Session } from "../postgres/connections.ts";
import type { Internals } from "./internals.ts";
import type { Incoming } from "./stored-event.ts";
import { judge, lockVersions, saveVersions } from "./versions.ts";
import type { AppliedVersion, VersionVerdict } from "./versions.ts";

/** What the inbox's own guard says of an event. */
export interface Guarded {
  readonly aggregate: string;
  readonly version: number;
  readonly verdict: VersionVerdict;
  /** Takes the event's version as applied; tells whether events wait behind a gap of the aggregate. */
  advance(): boolean;
}

/** The guard of `onGap` in one transaction: read once, decided in memory, written once. */
export interface VersionGuard {
  /** Locks the versions of all events that carry one. */
  lock(events: readonly Incoming[]): Promise<void>;
  /** `undefined` where the event is not guarded. Notes a gap, so that who fills it looks for what waits. */
  judge(message: EventMessage): Guarded | undefined;
  /** What to send with the commit. */
  calls(): readonly Call[];
}

/** A guard for one transaction. */
export function versionGuard<Tx>(inbox: Internals<Tx>, session: Session<Tx>): VersionGuard {
  const { onGap, firstVersion } = inbox.settings;
  const changed = new Map<string, AppliedVersion>();
  let locked = new Map<string, AppliedVersion>();
  return {
    lock: async (events) => {
      const aggregates = events.flatMap(({ message }) => aggregateOf(inbox, message) ?? []);
      if (aggregates.length > 0) locked = await lockVersions(inbox, session, aggregates);
    },
    judge: (message) => {
      const { aggregateVersion: version } = message;
      const aggregate = aggregateOf(inbox, message);
      if (aggregate === undefined || version === undefined || onGap === undefined) return undefined;
      const row = locked.get(aggregate);
      if (row === undefined) throw new Error("a version was judged without its lock");
      const verdict = judge(version, row, { onGap, firstVersion });
      if (verdict !== "stale") changed.set(aggregate, row);
      if (verdict === "gap") row.held = true;
      const advance = (): boolean => {
        row.version = version;
        return row.held;
      };
      return { aggregate, version, verdict, advance };
    },
    calls: () => (changed.size === 0 ? [] : [saveVersions(inbox, changed)]),
  };
}

/** Whose versions the inbox itself guards: the events of one key of a topic are one aggregate. */
function aggregateOf<Tx>({ settings }: Internals<Tx>, message: EventMessage): string | undefined {
  if (settings.onGap === undefined || message.aggregateVersion === undefined) return undefined;
  return `event:${message.topic}/${message.key}`;
}
