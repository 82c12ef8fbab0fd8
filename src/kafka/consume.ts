import type { EventHandlers } from "../inbox/handler.ts";
import type { Inbox } from "../inbox/inbox.ts";
import { inboxSettingNames } from "../inbox/settings.ts";
import type { InboxOptions } from "../inbox/settings.ts";
import { createInbox } from "../inbox/create-inbox.ts";
import type { Running } from "../internal/loop.ts";
import { systemRuntime } from "../internal/runtime.ts";
import { commitLoop } from "./commit-loop.ts";
import { consumeSettings } from "./consume-options.ts";
import type { ConsumeOptions } from "./consume-options.ts";
import { scheduler } from "./scheduler.ts";

/** How long the inbox tries by itself before the partitions are paused. */
const giveUpAfterMs = 1000;

/** What a consumer tells of itself. */
export interface ConsumeStats {
  /** Partitions owned now. */
  readonly assigned: number;
  /** Events in work. */
  readonly inFlight: number;
  /** Records that are read and whose offsets can't be committed yet. */
  readonly uncommitted: number;
  /** Whether the partitions are paused because the database is away. */
  readonly paused: boolean;
}

/** A running consumer. */
export interface Consumer extends Running {
  /** For replays of dead letters and parked keys. */
  readonly inbox: Inbox;
  stats(): ConsumeStats;
}

/**
 * Consumes topics so that each event takes effect once: every record goes through an inbox (R-DIST-IDEM-2; there is no
 * consumer without one), and offsets are committed after the database, without gaps, per partition, and only while the
 * partition is owned. Events of one key are handled in order; keys of one partition beside each other.
 *
 * While the database is away the partitions are paused; no offset moves and no attempt is counted. A message that is no
 * event becomes a dead letter. `stop()` lets what is in flight end, commits, and leaves the group.
 * @throws IdemkitError `option_invalid`, `kafka_auto_commit`.
 */
export function consume<Tx>(options: ConsumeOptions<Tx>, handlers: EventHandlers<Tx>): Consumer {
  const settings = consumeSettings(options);
  const inbox = createInbox(inboxOptionsOf(options), handlers);
  const { client } = options;
  const { logger, observe, topics, groupId } = settings;
  const fail = (what: string) => (error: unknown) =>
    logger.error(`idemkit: ${inbox.consumer}: ${what}: ${textOf(error)}`);
  const work = scheduler({
    inbox,
    client,
    settings,
    onCommittable: () => commits.soon(),
    runtime: systemRuntime,
  });
  const member = client.joinGroup(
    { ...settings, topics, groupId },
    {
      assigned: (partitions) => {
        work.assign(partitions);
        observe.assigned?.(partitions);
      },
      revoked: async (partitions, lost) => {
        const ended = work.revoke(partitions, lost, commits);
        observe.revoked?.(partitions, lost);
        await ended;
      },
      records: (from, records) => work.add(from, records),
      failed: fail("the Kafka client failed and tries again"),
    },
  );
  const commits = commitLoop({
    everyMs: settings.commitEveryMs,
    runtime: systemRuntime,
    works: () => work.works(),
    commit: (offsets) => member.commit(offsets),
    onCommitted: (offsets) => observe.committed?.(offsets),
    onError: fail("offsets could not be committed"),
  });
  work.start(member);

  let ended: Promise<void> | undefined;
  const end = async (): Promise<void> => {
    await work.stop();
    await commits.stop();
    await commits.now(work.works());
    await member.leave();
  };
  const stop = (): Promise<void> => (ended ??= end());
  return { inbox, stats: () => work.stats(), stop, [Symbol.asyncDispose]: stop };
}

function inboxOptionsOf<Tx>(options: ConsumeOptions<Tx>): InboxOptions<Tx> {
  const own = Object.fromEntries(
    inboxSettingNames.flatMap((name) => (options[name] === undefined ? [] : [[name, options[name]]])),
  ) as unknown as InboxOptions<Tx>;
  return { giveUpAfterMs, ...own, database: options.database };
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
