import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

import { enqueue, outboxStatus, runOnce } from "idemkit";
import { fromPg } from "idemkit/pg";
import { checkDelivery } from "idemkit/testing";
import type { SeenEvent } from "idemkit/testing";
import { expect, test } from "vitest";

import { createDatabase, spawnProcess, until } from "../support/index.ts";
import type { TestDatabase, TestProcess } from "../support/index.ts";

const script = "test/crash/relay-process.mjs";

interface Broker {
  readonly url: string;
  /** Every message, in the order of arrival. */
  readonly log: SeenEvent[];
  /** Called when a batch is in the log and before its sender is told so. */
  beforeAnswer: () => Promise<unknown>;
  [Symbol.asyncDispose](): Promise<void>;
}

async function startBroker(): Promise<Broker> {
  const log: SeenEvent[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      log.push(...(JSON.parse(await text(request)) as SeenEvent[]));
      await broker.beforeAnswer();
      response.end();
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const broker: Broker = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    log,
    beforeAnswer: async () => {},
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return broker;
}

const keys = Array.from({ length: 40 }, (_, i) => `order-${i}`);

/** Writers whose commits of a key are numbered by the key's row; returns the events in that order. */
async function write(database: TestDatabase, each: number): Promise<SeenEvent[]> {
  const pool = database.pool();
  const outbox = fromPg(pool);
  await pool.query(
    "create table if not exists account (key text primary key, version int not null default 0)",
  );
  await pool.query("insert into account (key) select unnest($1::text[]) on conflict do nothing", [keys]);
  const committed = new Map<string, SeenEvent[]>(keys.map((key) => [key, []]));
  const writer = async (_: unknown, name: number): Promise<void> => {
    for (let n = 0; n < each; n += 1) {
      const key = keys[(n * 7 + name * 3) % keys.length] ?? "";
      const command = { scope: "writer", operation: "write", key: `${name}-${n}`, command: {} };
      await runOnce(outbox, command, async ({ tx }) => {
        const { rows } = await tx.query<{ version: number }>(
          "update account set version = version + 1 where key = $1 returning version",
          [key],
        );
        const version = rows[0]?.version ?? 0;
        const eventId = await enqueue(tx, {
          type: "order.changed",
          key,
          payload: {},
          aggregateVersion: version,
        });
        const events = committed.get(key) ?? [];
        events[version - 1] = { eventId, key };
      });
    }
  };
  await Promise.all(Array.from({ length: 4 }, writer));
  return [...committed.values()].flat();
}

test("relays that are killed at any moment lose nothing, invert nothing, and re-send under the same ids", async () => {
  await using database = await createDatabase();
  await using broker = await startBroker();
  const start = (): TestProcess => spawnProcess(script, { args: [database.connectionString, broker.url] });
  let relays = [start(), start()];
  let kills = 0;

  // Half of the kills fall between the broker's log and its answer, the others anywhere.
  let killInAnswer = false;
  broker.beforeAnswer = async () => {
    if (!killInAnswer) return;
    killInAnswer = false;
    kills += 1;
    await Promise.all(relays.map((relay) => relay.kill("SIGKILL")));
  };
  const writing = write(database, 300);
  const grown = (from: number): Promise<unknown> =>
    until(() => broker.log.length > from + 60, { timeoutMs: 30_000, what: "the log to grow" });
  const killedInAnswer = (): boolean => !killInAnswer;
  for (let round = 0; round < 6; round += 1) {
    await grown(broker.log.length);
    if (round % 2 === 0) {
      killInAnswer = true;
      await until(killedInAnswer, { timeoutMs: 30_000, what: "a kill between log and answer" });
      await Promise.all(relays.map(({ exited }) => exited));
      relays = [start(), start()];
    } else {
      const [first, second] = relays;
      await first?.kill("SIGKILL");
      kills += 1;
      relays = [start(), ...(second === undefined ? [] : [second])];
    }
  }
  const committed = await writing;
  const status = fromPg(database.pool());
  await until(async () => (await outboxStatus(status)).unpublished === 0, {
    timeoutMs: 60_000,
    what: "the outbox empty",
  });
  await Promise.all(relays.map((relay) => relay.kill("SIGTERM")));

  const check = checkDelivery(committed, broker.log);
  expect(check).toMatchObject({ events: 1200, lost: 0, foreign: 0, inverted: 0, faults: [] });
  expect(check.resent).toBeGreaterThan(0);
  expect(kills).toBe(6);
});

test("a relay that was paused past its lease does no harm when it goes on", async () => {
  await using database = await createDatabase();
  await using broker = await startBroker();
  await using paused = spawnProcess(script, { args: [database.connectionString, broker.url] });
  const firstHalf = await write(database, 50);
  await until(() => broker.log.length >= 200, { timeoutMs: 30_000 });
  await paused.kill("SIGSTOP");
  const pool = database.pool();
  await pool.query("truncate idemkit.idempotency_record");
  const secondHalf = write(database, 50);
  await using successor = spawnProcess(script, { args: [database.connectionString, broker.url] });
  await successor.waitForLine(/started/);
  const committed = ofKeys([...firstHalf, ...(await secondHalf)]);
  await until(() => broker.log.length >= 400, { timeoutMs: 30_000 });
  await paused.kill("SIGCONT");
  // It has noticed when it shares the shards again.
  await until(
    async () => {
      const { rows } = await pool.query<{ owners: number }>(
        "select count(distinct owner)::int as owners from idemkit.outbox_shard where expires_at > clock_timestamp()",
      );
      return rows[0]?.owners === 2;
    },
    { timeoutMs: 30_000, what: "two owners" },
  );
  await until(async () => (await outboxStatus(fromPg(pool))).unpublished === 0);
  expect(checkDelivery(committed, broker.log)).toMatchObject({
    events: 400,
    lost: 0,
    foreign: 0,
    inverted: 0,
  });
});

/** The events of each key together: those of the second half have higher versions, and `write` numbers on. */
function ofKeys(events: readonly (SeenEvent | undefined)[]): SeenEvent[] {
  const there = events.filter((event) => event !== undefined);
  return keys.flatMap((key) => there.filter((event) => event.key === key));
}
