import { abortOf, lives } from "../lives.ts";
import type { GroupListener, GroupMember, GroupSettings, TopicPartition } from "../port.ts";
import { commitAs } from "./commit.ts";
import type { Membership } from "./commit.ts";
import { fetchLoop } from "./fetch-loop.ts";
import type { FetchLoop } from "./fetch-loop.ts";
import { protocolErrorOf } from "./protocol-error.ts";
import type { PlatformaticConsumer, PlatformaticModule } from "./structure.ts";

/** What is owned under one generation. */
interface Tenure {
  readonly membership: Membership;
  readonly owned: readonly TopicPartition[];
  readonly fetches: FetchLoop;
}

interface Member {
  readonly settings: GroupSettings;
  readonly listener: GroupListener;
  readonly maxBytesPerPartition: number;
  consumer: PlatformaticConsumer | undefined;
  tenure: Tenure | undefined;
}

/** Bytes of one partition in one fetch, where the options don't say. */
const defaultMaxBytes = 1_048_576;

/**
 * A member on `@platformatic/kafka`. The client keeps the membership; the records are fetched here and not by its
 * stream, which would mix what it had buffered for one assignment into the next.
 */
export function joinGroup(
  kafka: PlatformaticModule,
  options: Readonly<Record<string, unknown>>,
  settings: GroupSettings,
  listener: GroupListener,
): GroupMember {
  const stopping = new AbortController();
  const stopped = abortOf(stopping.signal);
  const { maxBytesPerPartition = defaultMaxBytes } = options as { maxBytesPerPartition?: number };
  const member: Member = { settings, listener, maxBytesPerPartition, consumer: undefined, tenure: undefined };
  const ended = lives({
    signal: stopping.signal,
    live: async () => {
      const consumer = new kafka.Consumer(
        configOf(options, settings) as never,
      ) as unknown as PlatformaticConsumer;
      member.consumer = consumer;
      const over = listen(member, consumer);
      consumer.topics.trackAll(...settings.topics);
      await consumer.joinGroup({});
      await Promise.race([over, stopped]);
    },
    end: async () => {
      await lose(member, !stopping.signal.aborted);
      await member.consumer?.close(true).catch(() => {});
      // What a join that was under way has brought meanwhile.
      await lose(member, true);
      member.consumer = undefined;
    },
    failed: listener.failed,
  });
  return {
    pause: (partitions) => member.tenure?.fetches.pause(partitions),
    resume: (partitions) => member.tenure?.fetches.resume(partitions),
    commit: async (offsets) => {
      const { consumer, tenure } = member;
      if (consumer !== undefined && tenure !== undefined) {
        await commitAs(kafka, consumer, tenure.membership, offsets);
      }
    },
    leave: async () => {
      stopping.abort();
      await ended;
    },
  };
}

function configOf(
  options: Readonly<Record<string, unknown>>,
  settings: GroupSettings,
): Record<string, unknown> {
  return {
    ...options,
    groupId: settings.groupId,
    autocommit: false,
    sessionTimeout: settings.sessionTimeoutMs,
    rebalanceTimeout: settings.rebalanceTimeoutMs,
    heartbeatInterval: settings.heartbeatMs,
  };
}

/** Resolves when the client is of no more use. */
function listen(member: Member, consumer: PlatformaticConsumer): Promise<void> {
  consumer.on("consumer:group:rebalance", () => void lose(member, false));
  consumer.on("consumer:group:join", (payload) => joined(member, consumer, payload));
  return new Promise((resolve) => {
    const end = (error: unknown): void => {
      member.listener.failed(error);
      resolve();
    };
    consumer.on("error", end);
    // The client sends no further heartbeats after one that failed, and does not look for a new coordinator.
    consumer.on("consumer:heartbeat:error", (payload) => end((payload as { error: unknown }).error));
  });
}

/** Synchronous up to the listener's first await: the last offsets are sent under the old generation. */
function lose(member: Member, lost: boolean): Promise<void> {
  const given = member.tenure;
  if (given === undefined) return Promise.resolve();
  given.fetches.stop();
  const ended = given.owned.length > 0 ? member.listener.revoked(given.owned, lost) : Promise.resolve();
  member.tenure = undefined;
  return ended;
}

function joined(member: Member, consumer: PlatformaticConsumer, payload: unknown): void {
  void lose(member, true);
  const { settings, listener, maxBytesPerPartition } = member;
  const { assignments } = payload as { assignments: { topic: string; partitions: number[] }[] | null };
  const owned = (assignments ?? []).flatMap(({ topic, partitions }) =>
    partitions.map((partition) => ({ topic, partition })),
  );
  const fetches = fetchLoop({
    consumer,
    settings,
    partitions: owned,
    maxBytesPerPartition,
    records: listener.records,
    failed: listener.failed,
    protocolErrorOf,
  });
  const { generationId, memberId } = consumer;
  member.tenure = { membership: { groupId: settings.groupId, generationId, memberId }, owned, fetches };
  listener.assigned(owned);
}
