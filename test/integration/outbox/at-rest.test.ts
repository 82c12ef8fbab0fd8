import { setTimeout as delay } from "node:timers/promises";

import { startRelay } from "idemkit";
import pg from "pg";
import { expect, test } from "vitest";

import { placeOf } from "../../../src/outbox/shard.ts";
import { channelOf, sharesChanged } from "../../../src/outbox/wake.ts";
import { until } from "../../support/index.ts";
import { acknowledged, createOutbox, order, recordingPublisher, relay, send } from "./support.ts";
import type { Outbox } from "./support.ts";

const failed = { published: "failed", error: new Error("no leader") } as const;

/** A key in the same shard as `bad`. */
function neighbour(): string {
  const shardOf = (key: string): number => placeOf("idemkit", "order", key).shard;
  const keys = Array.from({ length: 1000 }, (_, n) => `order-${n}`);
  return keys.find((key) => shardOf(key) === shardOf("bad")) ?? "";
}

/** Counts what relays tell each other about their shares. */
async function listening({ test: { connectionString } }: Outbox) {
  const client = new pg.Client({ connectionString });
  await client.connect();
  const heard = { shares: 0 };
  client.on("notification", ({ payload }) => {
    if (payload === sharesChanged) heard.shares += 1;
  });
  await client.query(`listen ${channelOf("idemkit")}`);
  return { heard, [Symbol.asyncDispose]: () => client.end() };
}

test.each([3, 7])("%d relays whose shares don't divide come to rest", async (count) => {
  const outbox = await createOutbox();
  await using ear = await listening(outbox);
  const notify = { connectionString: outbox.test.connectionString };
  const relays = Array.from({ length: count }, () =>
    relay(outbox.database, recordingPublisher(), { notify, heartbeatMs: 1000, leaseMs: 3000 }),
  );
  await until(() => relays.reduce((sum, each) => sum + each.stats().shards.length, 0) === 16);
  // Silent over more than a heartbeat: each of them has looked at its share meanwhile.
  const isSilent = async (): Promise<boolean> => {
    const before = ear.heard.shares;
    await delay(1300);
    return ear.heard.shares === before;
  };
  await until(isSilent, { timeoutMs: 10_000, what: "silence" });
});

test("what stands behind the events of a key that fails is published", async () => {
  const outbox = await createOutbox();
  for (let n = 0; n < 3; n += 1) {
    await send(outbox.database, ...Array.from({ length: 50 }, (_, m) => order("bad", n * 50 + m)));
  }
  const publisher = recordingPublisher();
  publisher.decide = ({ key }) => (key === "bad" ? failed : acknowledged);
  relay(outbox.database, publisher, { batchSize: 400 });
  // Shrunk by then to fewer than stand before the other key's event.
  await until(() => publisher.batches.at(-1) === 100, { timeoutMs: 20_000 });
  const other = neighbour();
  await send(outbox.database, order(other));
  await until(() => publisher.accepted.length > 0, { timeoutMs: 20_000 });
  expect(publisher.accepted.map(({ key }) => key)).toEqual([other]);
});

test.each<[string, () => unknown]>([
  [
    "throw",
    () => {
      throw new Error("the logger is broken");
    },
  ],
  ["reject", () => Promise.reject(new Error("the logger is broken"))],
])("callbacks that %s stop neither a shard nor the relay's end", async (_how, broken) => {
  const outbox = await createOutbox();
  const publisher = recordingPublisher();
  let tries = 0;
  publisher.decide = () => ((tries += 1) === 1 ? failed : acknowledged);
  const running = startRelay(outbox.database, {
    publisher,
    pollMs: 10,
    logger: { info: broken, error: broken },
    onParked: broken,
  });
  await send(outbox.database, order("order-1"));
  await until(() => publisher.accepted.length === 1);
  await running.stop();
});
