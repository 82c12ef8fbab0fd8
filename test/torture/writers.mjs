// Business transactions: each charges one to three customers, and its events are in the outbox with it.
import { setTimeout as delay } from "node:timers/promises";

import { enqueueAll } from "idemkit";

/** @typedef {import("pg").Pool} Pool */
/** @typedef {{ key: string, cents: number, resendAfterMs: number | undefined }} Charge */

const keyCount = 2000;

/** The row lock of the account makes n the order of the commits of its key. */
const count = `insert into account (key, n) values ($1, 1) on conflict (key) do update set n = account.n + 1 returning n`;
const note = `insert into sent (event_id, key, n, cents, resend_at)
values ($1, $2, $3, $4, now() + $5::int * interval '1 millisecond')`;

/**
 * @param {() => number} random
 * @returns {Charge}
 */
function charge(random) {
  const key = `customer-${Math.floor(random() * keyCount)}`;
  const cents = 1 + Math.floor(random() * 100_000);
  return { key, cents, resendAfterMs: whenAgain(random) };
}

/**
 * A fifth of the events is sent again: half of them at once, half behind later ones.
 * @param {() => number} random
 */
function whenAgain(random) {
  const fate = random();
  if (fate < 0.1) return 0;
  return fate < 0.2 ? 1000 + Math.floor(random() * 5000) : undefined;
}

/**
 * @param {import("pg").PoolClient} client
 * @param {string} topic
 * @param {readonly Charge[]} charges in the order of their keys, so that two transactions never wait for each other
 */
async function commit(client, topic, charges) {
  await client.query("begin");
  const numbered = [];
  for (const each of charges) {
    const { rows } = /** @type {{ rows: { n: number }[] }} */ (
      await client.query({ name: "count", text: count, values: [each.key] })
    );
    numbered.push({ ...each, n: rows[0]?.n ?? 0 });
  }
  const events = numbered.map(({ key, n, cents }) => ({
    type: "payment.charged",
    topic,
    key,
    payload: { n, cents },
  }));
  const ids = await enqueueAll(client, events);
  for (const [at, { key, n, cents, resendAfterMs = null }] of numbered.entries()) {
    await client.query({ name: "note", text: note, values: [ids[at], key, n, cents, resendAfterMs] });
  }
}

/**
 * Writes until `events` events are committed, at the pace that takes `seconds`.
 * @param {{ pool: Pool, topic: string, random: () => number, events: number, seconds: number, writers?: number }} options
 * @returns {Promise<{ written: number, failed: number }>} transactions whose end is not known count as failed
 */
export async function write({ pool, topic, random, events, seconds, writers = 6 }) {
  const startedAt = performance.now();
  let given = 0;
  let written = 0;
  let failed = 0;

  async function one() {
    while (written < events) {
      const aheadMs = (given / events) * seconds * 1000 - (performance.now() - startedAt);
      if (aheadMs > 0) await delay(aheadMs);
      const keys = new Map(
        Array.from({ length: 1 + Math.floor(random() * 3) }, () => charge(random)).map((c) => [c.key, c]),
      );
      const charges = [...keys.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
      given += charges.length;
      const sleepMs = random() < 0.02 ? 50 + random() * 300 : 0;
      if (await attempt(charges, sleepMs)) written += charges.length;
      else failed += 1;
    }
  }

  /**
   * @param {readonly Charge[]} charges
   * @param {number} sleepMs between enqueue and commit, while later ones commit
   */
  async function attempt(charges, sleepMs) {
    /** @type {import("pg").PoolClient | undefined} */
    let client;
    try {
      client = await pool.connect();
      await commit(client, topic, charges);
      if (sleepMs > 0) await delay(sleepMs);
      await client.query("commit");
      client.release();
      return true;
    } catch {
      client?.release(true);
      await delay(100);
      return false;
    }
  }

  await Promise.all(Array.from({ length: writers }, one));
  return { written, failed };
}
