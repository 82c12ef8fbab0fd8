import type { Inbox } from "../inbox/inbox.ts";
import type { Runtime } from "../internal/runtime.ts";
import type { CommitLoop } from "./commit-loop.ts";
import type { ConsumeSettings } from "./consume-options.ts";
import type { ConsumeStats } from "./consume.ts";
import { outage } from "./outage.ts";
import type { Outage } from "./outage.ts";
import { nameOf, partitionWork } from "./partition-work.ts";
import type { Entry, PartitionWork } from "./partition-work.ts";
import { places } from "./places.ts";
import type { Places } from "./places.ts";
import type { ConsumedRecord, GroupMember, KafkaClient, TopicPartition } from "./port.ts";
import { entryOf, runBatch } from "./run-batch.ts";

/** Decides what is worked on: the partitions owned now, by turns, within the bounds of concurrency. */
export interface Scheduler {
  start(member: GroupMember): void;
  assign(partitions: readonly TopicPartition[]): void;
  /** Synchronous up to the last commit where the client does not wait; else it waits for what is in flight. */
  revoke(partitions: readonly TopicPartition[], lost: boolean, commits: CommitLoop): Promise<void>;
  add(from: TopicPartition, records: readonly ConsumedRecord[]): void;
  works(): readonly PartitionWork[];
  stats(): ConsumeStats;
  /** Starts nothing more, and resolves when nothing is in flight. */
  stop(): Promise<void>;
}

/** Settings of {@link scheduler}. */
export interface SchedulerSettings {
  readonly inbox: Inbox;
  readonly client: KafkaClient;
  readonly settings: ConsumeSettings;
  readonly onCommittable: () => void;
  readonly runtime: Runtime;
}

interface State extends SchedulerSettings {
  /** In the order of their turns. */
  readonly works: Map<string, PartitionWork>;
  readonly places: Places;
  readonly away: Outage;
  member: GroupMember | undefined;
  stopping: boolean;
}

/** Batches that go on without a place, for each place there is. */
const cededPerPlace = 8;

/** Nothing is owned to begin with. */
export function scheduler(given: SchedulerSettings): Scheduler {
  const { client, settings } = given;
  const state: State = {
    ...given,
    works: new Map(),
    places: places(settings.concurrency * cededPerPlace),
    away: outage(
      outageListener(() => state),
      given.runtime,
    ),
    member: undefined,
    stopping: false,
  };
  const all = (): PartitionWork[] => [...state.works.values()];
  return {
    start: (member) => void (state.member = member),
    assign: (partitions) => {
      for (const of of partitions) state.works.set(nameOf(of), partitionWork(of));
      flow(state);
    },
    revoke: async (partitions, lost, commits) => {
      const mine = removed(state, partitions);
      for (const work of mine) work.close();
      const waits = client.capabilities.awaitsRevocation && !lost;
      if (waits) await endOf(mine, settings.revokeGraceMs, "partition revoked");
      const last = lost ? undefined : commits.now(mine);
      for (const work of mine) {
        work.revoke();
        work.abort(new Error("partition revoked"));
      }
      await last;
    },
    add: (from, records) => {
      const work = state.works.get(nameOf(from));
      work?.add(records.map((record) => entryOf(from, record, settings.headers)));
      pump(state);
    },
    works: all,
    stats: () => statsOf(all(), state.away.active),
    stop: async () => {
      state.stopping = true;
      state.away.stop();
      for (const work of all()) work.close();
      await endOf(all(), settings.stopGraceMs, "consumer stopped");
    },
  };
}

function outageListener(stateOf: () => State): Parameters<typeof outage>[0] {
  return {
    paused: (error) => {
      const { inbox, settings } = stateOf();
      settings.logger.error(
        `idemkit: ${inbox.consumer}: the database is away, partitions are paused: ${String(error)}`,
      );
      flow(stateOf());
      settings.observe.paused?.(error);
    },
    resumed: () => {
      const { inbox, settings } = stateOf();
      settings.logger.info(`idemkit: ${inbox.consumer}: the database is back, partitions are resumed`);
      flow(stateOf());
      settings.observe.resumed?.();
    },
    probe: () => pump(stateOf()),
  };
}

/** Starts what may be started. */
function pump(state: State): void {
  while (!state.stopping && state.places.taken < state.away.allowed(state.settings.concurrency)) {
    const next = nextBatch(state);
    if (next === undefined) break;
    void run(state, next.work, next.entries);
  }
  // Paused partitions bring nothing to try: what there was went away with its partition. Nobody else would find out.
  if (state.away.probing && state.places.taken === 0) state.away.end();
  flow(state);
}

/** Holds back at the client what can't be worked on soon. */
function flow({ works, away, member, settings }: State): void {
  for (const work of works.values()) {
    const { maxUncommitted } = settings;
    const full = work.uncommitted >= (work.paused ? maxUncommitted / 2 : maxUncommitted);
    if ((full || away.active) === work.paused) continue;
    work.paused = full || away.active;
    if (work.paused) member?.pause([work.of]);
    else member?.resume([work.of]);
  }
}

/** By turns: a partition that was served goes to the end. */
function nextBatch({
  works,
  settings,
}: State): { readonly work: PartitionWork; readonly entries: readonly Entry[] } | undefined {
  for (const [name, work] of works) {
    const entries = work.take(settings.batchSize);
    if (entries.length === 0) continue;
    works.delete(name);
    works.set(name, work);
    return { work, entries };
  }
  return undefined;
}

async function run(state: State, work: PartitionWork, entries: readonly Entry[]): Promise<void> {
  const { inbox, settings, away, onCommittable } = state;
  const place = state.places.take();
  try {
    await runBatch({
      inbox,
      work,
      entries,
      onOutcome: (outcome, entry) => {
        if (entry.done) return;
        work.settle(entry);
        settings.observe.outcome?.(outcome, { ...work.of, offset: entry.offset });
        onCommittable();
        // After the batch has told all it knows now: mostly it has ended then.
        if (place.cede()) setImmediate(pump, state);
      },
    });
    away.end();
  } catch (error) {
    work.giveBack(entries.filter(({ done }) => !done));
    if (!work.signal.aborted) away.begin(error);
  } finally {
    place.leave();
    pump(state);
  }
}

function removed({ works }: State, partitions: readonly TopicPartition[]): PartitionWork[] {
  return partitions.flatMap((of) => {
    const work = works.get(nameOf(of));
    works.delete(nameOf(of));
    return work ?? [];
  });
}

/** Waits for what is in flight; what takes longer is aborted, and waited for too. */
async function endOf(works: readonly PartitionWork[], graceMs: number, reason: string): Promise<void> {
  const idle = Promise.all(works.map((work) => work.idle()));
  const timer = setTimeout(() => {
    for (const work of works) work.abort(new Error(reason));
  }, graceMs);
  await idle;
  clearTimeout(timer);
}

function statsOf(works: readonly PartitionWork[], paused: boolean): ConsumeStats {
  let inFlight = 0;
  let uncommitted = 0;
  for (const work of works) {
    inFlight += work.inFlight;
    uncommitted += work.uncommitted;
  }
  return { assigned: works.length, inFlight, uncommitted, paused };
}
