import type { EventOutcome, Inbox } from "idemkit";
import { describe, expect, test } from "vitest";

import { consumeSettings } from "../../../src/kafka/consume-options.ts";
import type { ConsumedRecord, GroupMember, KafkaClient, TopicPartition } from "../../../src/kafka/port.ts";
import { scheduler } from "../../../src/kafka/scheduler.ts";
import type { Scheduler } from "../../../src/kafka/scheduler.ts";
import { until } from "../../support/until.ts";
import { stepped } from "./stepped.ts";

interface Batch {
  readonly keys: readonly string[];
  readonly signal: AbortSignal | undefined;
  finish(outcome: EventOutcome): void;
  fail(error: Error): void;
}

interface Bench {
  readonly work: Scheduler;
  /** Batches that the inbox was given and has not ended. */
  readonly batches: Batch[];
  readonly paused: Set<number>;
  /** Ends the pause between two tries. */
  wake(): Promise<void>;
}

const commits = {
  soon: (): void => {},
  now: async (): Promise<void> => {},
  stop: async (): Promise<void> => {},
};
const quiet = { info: (): void => {}, error: (): void => {} };

/** A scheduler whose inbox ends batches when the test says so: no database could be made to fail in this order. */
function bench(): Bench {
  const batches: Batch[] = [];
  const paused = new Set<number>();
  const { runtime, wake } = stepped();
  const inbox = {
    consumer: "ledger",
    processBatch: (events, { signal } = {}) =>
      new Promise((resolve, reject) => {
        const batch: Batch = {
          keys: events.map(({ key }) => key),
          signal,
          finish: (outcome) => {
            batches.splice(batches.indexOf(batch), 1);
            resolve(events.map(() => outcome));
          },
          fail: (error) => {
            batches.splice(batches.indexOf(batch), 1);
            reject(error);
          },
        };
        batches.push(batch);
        signal?.addEventListener("abort", () => batch.fail(new Error("aborted")));
      }),
  } as Inbox;
  const client = { capabilities: { awaitsRevocation: false, keepsPartitions: false } } as KafkaClient;
  const settings = consumeSettings({
    database: undefined as never,
    client,
    consumer: "ledger",
    topics: ["payment"],
    concurrency: 2,
    logger: quiet,
  });
  const work = scheduler({ inbox, client, settings, onCommittable: () => {}, runtime });
  const member: GroupMember = {
    pause: (partitions) => partitions.forEach((of) => paused.add(of.partition)),
    resume: (partitions) => partitions.forEach((of) => paused.delete(of.partition)),
    commit: async () => {},
    leave: async () => {},
  };
  work.start(member);
  return { work, batches, paused, wake };
}

function partition(number: number): TopicPartition {
  return { topic: "payment", partition: number };
}

function record(offset: number, key: string): ConsumedRecord {
  const id = `0192f0c1-2b3c-7d4e-8f90-${String(offset).padStart(12, "0")}`;
  const headers = { event_id: id, event_type: "payment.charged" };
  return { offset: BigInt(offset), key: Buffer.from(key), value: Buffer.from("{}"), headers };
}

describe("the scheduler", () => {
  test("goes on after an outage although everything it could have tried was revoked meanwhile", async () => {
    const { work, batches, paused, wake } = bench();
    work.assign([partition(1), partition(2)]);
    work.add(partition(1), [record(1, "a")]);
    work.add(partition(2), [record(2, "b")]);
    batches.find(({ keys }) => keys.includes("b"))?.fail(new Error("away"));
    await until(() => paused.size === 2, { what: "the pause" });
    await work.revoke([partition(2)], false, commits);
    // The pause is over while a batch of before is still in flight, and then that one goes away, too.
    await wake();
    await work.revoke([partition(1)], false, commits);
    work.assign([partition(3)]);
    await until(() => !paused.has(3) && !work.stats().paused, { what: "the end of the outage" });
    work.add(partition(3), [record(3, "c")]);
    expect(batches.map(({ keys }) => keys)).toEqual([["c"]]);
  });

  test("gives the place of a batch that was split by a failure to other keys", async () => {
    const { work, batches } = bench();
    work.assign([partition(1)]);
    work.add(partition(1), [record(1, "a")]);
    work.add(partition(1), [record(2, "b")]);
    work.add(partition(1), [record(3, "c")]);
    expect(batches).toHaveLength(2);
    batches[0]?.finish("executed");
    await until(() => batches.some(({ keys }) => keys.includes("c")), { what: "the third batch" });
    expect(work.stats()).toMatchObject({ assigned: 1, inFlight: 2, uncommitted: 2 });
  });

  test("stops when what is in flight has ended, and starts nothing more", async () => {
    const { work, batches } = bench();
    work.assign([partition(1)]);
    work.add(partition(1), [record(1, "a")]);
    const stopped = work.stop();
    work.add(partition(1), [record(2, "b")]);
    expect(batches).toHaveLength(1);
    batches[0]?.finish("executed");
    await stopped;
    expect(batches).toHaveLength(0);
    expect(work.works()[0]?.toCommit()).toMatchObject({ offset: 2n });
  });
});
