import type { Inbox } from "../inbox/inbox.ts";
import type { EventOutcome } from "../inbox/outcome.ts";
import { systemRuntime } from "../internal/runtime.ts";
import type { CommitLoop } from "./commit-loop.ts";
import type { ConsumeSettings } from "./consume-options.ts";
import type { ConsumeStats } from "./consume.ts";
import { outage } from "./outage.ts";
import { nameOf, partitionWork } from "./partition-work.ts";
import type { Entry, PartitionWork } from "./partition-work.ts";
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
}

/**
 * A batch that told outcomes before its end was split by a failure, and some of its keys wait for another try. It gives
 * its place to another batch, so that poison does not stop other keys; but no more than this many times the places.
 */
const splitFactor = 8;

export function scheduler({ inbox, client, settings, onCommittable }: SchedulerSettings): Scheduler {
  const { concurrency, batchSize, maxUncommitted, observe, logger } = settings;
  const works = new Map<string, PartitionWork>();
  let member: GroupMember | undefined;
  let places = 0;
  let split = 0;
  let stopping = false;
  const away = outage(
    {
      paused: (error) => {
        logger.error(`idemkit: ${inbox.consumer}: the database is away, partitions are paused: ${String(error)}`);
        flow();
        observe.paused?.(error);
      },
      resumed: () => {
        logger.info(`idemkit: ${inbox.consumer}: the database is back, partitions are resumed`);
        flow();
        observe.resumed?.();
      },
      probe: () => {
        pump();
        // Paused partitions bring nothing to try: what there was went away with its partition.
        if (places === 0) away.end();
      },
    },
    systemRuntime,
  );

  /** Holds back at the client what can't be worked on soon. */
  function flow(): void {
    for (const work of works.values()) {
      const full = work.uncommitted >= (work.paused ? maxUncommitted / 2 : maxUncommitted);
      if ((full || away.active) === work.paused) continue;
      work.paused = full || away.active;
      if (work.paused) member?.pause([work.of]);
      else member?.resume([work.of]);
    }
  }

  function pump(): void {
    while (!stopping && places < away.allowed(concurrency)) {
      const next = nextBatch();
      if (next === undefined) break;
      void run(next.work, next.entries);
    }
    flow();
  }

  /** By turns: a partition that was served goes to the end. */
  function nextBatch(): { readonly work: PartitionWork; readonly entries: Entry[] } | undefined {
    for (const [name, work] of works) {
      const entries = work.take(batchSize);
      if (entries.length === 0) continue;
      works.delete(name);
      works.set(name, work);
      return { work, entries };
    }
    return undefined;
  }

  async function run(work: PartitionWork, entries: readonly Entry[]): Promise<void> {
    let holdsPlace = true;
    places += 1;
    const leave = (): void => {
      if (!holdsPlace) return;
      holdsPlace = false;
      places -= 1;
    };
    const onOutcome = (outcome: EventOutcome, entry: Entry): void => {
      if (entry.done) return;
      work.settle(entry);
      observe.outcome?.(outcome, { ...work.of, offset: entry.offset });
      onCommittable();
      if (holdsPlace && split < concurrency * splitFactor) {
        leave();
        split += 1;
        // After the batch has told all it knows now: mostly it has ended then.
        setImmediate(pump);
      }
    };
    try {
      await runBatch({ inbox, work, entries, onOutcome });
      away.end();
    } catch (error) {
      work.giveBack(entries.filter(({ done }) => !done));
      if (!work.signal.aborted) away.begin(error);
    } finally {
      if (holdsPlace) leave();
      else split -= 1;
      pump();
    }
  }

  function take(partitions: readonly TopicPartition[]): PartitionWork[] {
    return partitions.flatMap((of) => {
      const work = works.get(nameOf(of));
      works.delete(nameOf(of));
      return work ?? [];
    });
  }

  async function revoke(partitions: readonly TopicPartition[], lost: boolean, commits: CommitLoop): Promise<void> {
    const mine = take(partitions);
    for (const work of mine) work.close();
    if (client.capabilities.awaitsRevocation && !lost) await endOf(mine, settings.revokeGraceMs, "partition revoked");
    const last = lost ? undefined : commits.now(mine);
    for (const work of mine) {
      work.revoke();
      work.abort(new Error("partition revoked"));
    }
    await last;
  }

  return {
    start: (joined) => void (member = joined),
    assign: (partitions) => {
      for (const of of partitions) works.set(nameOf(of), partitionWork(of));
      flow();
    },
    revoke,
    add: (from, records) => {
      works.get(nameOf(from))?.add(records.map((record) => entryOf(from, record, settings.headers)));
      pump();
    },
    works: () => [...works.values()],
    stats: () => statsOf([...works.values()], away.active),
    stop: async () => {
      stopping = true;
      away.stop();
      const all = [...works.values()];
      for (const work of all) work.close();
      await endOf(all, settings.stopGraceMs, "consumer stopped");
    },
  };
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
