import { deadLetters, discardDeadLetter } from "idemkit";
import { fromPg } from "idemkit/pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { deferred } from "../../support/deferred.ts";
import { until } from "../../support/index.ts";
import { event, nameOf, openBench, writeEffect } from "./harness.ts";
import type { Bench, Handlers } from "./harness.ts";

let bench: Bench;
beforeEach(async () => {
  bench = await openBench();
});
afterEach(() => bench.database.drop());

const order = { topic: "payment", key: "order-1" };
const once = { attempts: 1, baseMs: 0 };

/** Waits until a statement on this table waits for a lock. */
const waitsFor = (table: string) =>
  until(async () => {
    const waiting = await bench.rows(
      `select 1 from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock' and query like $1`,
      [`%${table}%`],
    );
    return waiting.length > 0;
  });

/** Holds a table so that writes to it wait, until it is released. */
async function held(table: string): Promise<() => Promise<void>> {
  const client = await bench.pool.connect();
  await client.query("begin");
  await client.query(`lock table idemkit.${table} in share mode`);
  return async () => {
    await client.query("commit");
    client.release();
  };
}

/** Fails at first; after `mend` its next run fails once more, and all others succeed. */
function mended(beforeItFails: () => Promise<void> = async () => {}) {
  let isBroken = true;
  let runs = 0;
  const handlers: Handlers = {
    "*": async ({ data }, { tx }) => {
      if (isBroken) throw new Error("broken");
      runs += 1;
      if (runs === 1) {
        await beforeItFails();
        throw new Error("failed once more");
      }
      await writeEffect(tx, nameOf(data));
    },
  };
  const mend = (): void => {
    isBroken = false;
  };
  return { handlers, mend };
}

describe("a run that fails its last try while another succeeds brings nothing back", () => {
  test("of a dead letter", async () => {
    const [entered, gate] = [deferred(), deferred()];
    const { handlers, mend } = mended(async () => {
      entered.resolve();
      await gate.promise;
    });
    const inbox = bench.inbox(handlers, { retry: once });
    const letter = event("a");
    expect(await inbox.process(letter)).toBe("dead-lettered");
    mend();
    const losing = inbox.replayDeadLetter(letter.eventId);
    await entered.promise;
    const winning = inbox.replayDeadLetter(letter.eventId);
    await waitsFor("dead_letter");
    gate.resolve();
    await Promise.all([losing, winning]);
    await inbox.replayDeadLetter(letter.eventId);
    expect(await bench.effects()).toEqual(["a"]);
    expect(await deadLetters(fromPg(bench.pool))).toEqual([]);
  });

  test("of a dead letter that a person has discarded", async () => {
    const inbox = bench.inbox({ "*": () => Promise.reject(new Error("broken")) }, { retry: once });
    const { eventId } = event("a");
    await inbox.process({ ...event("a"), eventId });
    const letGo = await held("event_attempt");
    const replayed = inbox.replayDeadLetter(eventId);
    await waitsFor("event_attempt");
    expect(await discardDeadLetter(fromPg(bench.pool), { consumer: "ledger", eventId })).toBe(true);
    await letGo();
    expect(await replayed).toBeUndefined();
    expect(await deadLetters(fromPg(bench.pool))).toEqual([]);
  });

  test("of a parked key", async () => {
    const { handlers, mend } = mended();
    const inbox = bench.inbox(handlers, { poison: "park", retry: once });
    expect(await inbox.process(event("a"))).toBe("parked");
    mend();
    // Between its failure and its charge.
    const letGo = await held("event_attempt");
    const losing = inbox.releaseParkedKey(order);
    await waitsFor("event_attempt");
    expect(await inbox.releaseParkedKey(order)).toMatchObject({ applied: 1, parked: 0 });
    await letGo();
    await losing;
    await inbox.releaseParkedKey(order);
    expect(await bench.effects()).toEqual(["a"]);
    expect(await bench.rows("select key from idemkit.parked_key")).toEqual([]);
  });

  test("of an event behind a gap", async () => {
    const [entered, gate] = [deferred(), deferred()];
    let runs = 0;
    const handlers: Handlers = {
      "payment.charged": async ({ data }, { tx }) => {
        if (nameOf(data) === "v2" && (runs += 1) === 1) {
          entered.resolve();
          await gate.promise;
          throw new Error("failed once");
        }
        await writeEffect(tx, nameOf(data));
      },
    };
    const inbox = bench.inbox(handlers, { onGap: "hold", retry: once });
    const first = event("v1", { version: 1 });
    expect(await inbox.process(event("v2", { version: 2 }))).toBe("parked");
    const losing = inbox.process(first);
    await entered.promise;
    // Delivered again elsewhere: a duplicate looks for what waits.
    const winning = inbox.process(first);
    await waitsFor("aggregate_version");
    gate.resolve();
    expect(await Promise.all([losing, winning])).toEqual(["executed", "duplicate"]);
    expect(await bench.effects()).toEqual(["v1", "v2"]);
    expect(await deadLetters(fromPg(bench.pool))).toEqual([]);
  });
});

test("a key is not opened over a follower that an older snapshot can't see", async () => {
  const repeatable = bench.database.pool({
    max: 10,
    options: String.raw`-c default_transaction_isolation=repeatable\ read`,
  });
  let isBroken = true;
  const handlers: Handlers = {
    "*": async ({ data }, { tx }) => {
      if (isBroken) throw new Error("broken");
      await writeEffect(tx, nameOf(data));
    },
  };
  const inbox = bench.inbox(handlers, { poison: "park", retry: once }, repeatable);
  await inbox.process(event("a1"));
  isBroken = false;
  // As behind the release's first round.
  await bench.rows("delete from idemkit.parked_event");
  const letGo = await held("parked_event");
  const follower = inbox.process(event("a2"));
  await waitsFor("parked_event");
  const released = inbox.releaseParkedKey(order);
  await waitsFor("parked_key");
  await letGo();
  expect(await follower).toBe("parked");
  expect(await released).toMatchObject({ applied: 1, parked: 0 });
  await inbox.process(event("a3"));
  expect(await bench.effects()).toEqual(["a2", "a3"]);
});
