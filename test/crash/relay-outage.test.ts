import type { EventMessage } from "idemkit";
import { enqueue, outboxStatus, runOnce, startRelay } from "idemkit";
import { fromPg } from "idemkit/pg";
import { checkDelivery } from "idemkit/testing";
import { expect, test } from "vitest";

import { startCluster, until } from "../support/index.ts";

test("a relay outlives an outage of the database, paced, and then delivers all in order", async () => {
  await using cluster = await startCluster();
  const outbox = await cluster.createDatabase();
  const pool = outbox.pool({ connectionTimeoutMillis: 2000 });
  const database = fromPg(pool);
  const committed: { eventId: string; key: string }[] = [];
  const send = async (n: number): Promise<void> => {
    const key = `order-${n % 5}`;
    await runOnce(database, { scope: "a", operation: "b", key: `key-${n}`, command: {} }, async ({ tx }) => {
      committed[n] = { eventId: await enqueue(tx, { type: "order.created", key, payload: { n } }), key };
    });
  };
  const delivered: EventMessage[] = [];
  const errors: string[] = [];
  await using relay = startRelay(database, {
    publisher: {
      publish: async (messages) => {
        delivered.push(...messages);
        return messages.map(() => ({ published: "acknowledged" }));
      },
      [Symbol.asyncDispose]: async () => {},
    },
    notify: { connectionString: outbox.connectionString },
    leaseMs: 2000,
    heartbeatMs: 200,
    logger: { info: () => {}, error: (text) => errors.push(text) },
  });
  for (let n = 0; n < 20; n += 1) await send(n);
  await until(() => relay.stats().published === 20);

  await cluster.stop("immediate");
  const failuresBefore = errors.length;
  const startedMs = performance.now();
  await until(() => errors.length >= failuresBefore + 5);
  // Three loops retry here, each with a pause of 50 ms at least: five complaints can't come at once.
  expect(performance.now() - startedMs).toBeGreaterThan(50);
  await cluster.start();
  for (let n = 20; n < 40; n += 1) await send(n);
  // Not by a count: a crash of the server may bring back deletes that had not reached the disk.
  await until(async () => (await outboxStatus(database)).unpublished === 0, { timeoutMs: 30_000 });
  expect(checkDelivery(committed, delivered)).toMatchObject({ events: 40, lost: 0, foreign: 0, inverted: 0 });
  await relay.stop();
});
