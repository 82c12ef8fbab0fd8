// Business transactions: each charges one to eight customers, and its events are in the outbox with it.
import { setTimeout as delay } from "node:timers/promises";

import { enqueueAll } from "idemkit";

/** @typedef {import("pg").Pool} Pool */
/** @typedef {{ key: string, cents: number, resendAfterMs: number | undefined }} Charge */

const keyCount = 2000;

/** Charges of one transaction. */
const mostCharges = 8;

/** The row locks of the accounts, taken in the order of the keys, make n the order of the commits of each key. */
const count = `insert into account (key, n) select key, 1 from unnest($1::text[]) as key order by key
on conflict (key) do update set n = account.n + 1 returning key, n`;
const note = `insert into sent (event_id, key, n, cents, resend_at)
select event_id, key, n, cents, now() + again * interval '1 millisecond'
from unnest($1::uuid[], $2::text[], $3::int[], $4::bigint[], $5::int[]) as s (event_id, key, n, cents, again)`;

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
 * Everything of one transaction but its end.
 * @param {import("pg").PoolClient} client
 * @param {string} topic
 * @param {readonly Charge[]} charges of different keys
 */
async function prepare(client, topic, charges) {
  await client.query("begin");
  const keys = charges.map(({ key }) => key);
  const { rows } = /** @type {{ rows: { key: string, n: number }[] }} */ (
    await client.query({ name: "count", text: count, values: [keys] })
  );
  const counts = new Map(rows.map(({ key, n }) => [key, n]));
  const numbers = keys.map((key) => counts.get(key) ?? 0);
  const events = charges.map(({ key, cents }, at) => ({
    type: "payment.charged",
    topic,
    key,
    payload: { n: numbers[at] ?? 0, cents },
  }));
  const ids = await enqueueAll(client, events);
  const again = charges.map(({ resendAfterMs = null }) => resendAfterMs);
  const values = [ids, keys, numbers, charges.map(({ cents }) => cents), again];
  await client.query({ name: "note", text: note, values });
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
      const drawn = Array.from({ length: 1 + Math.floor(random() * mostCharges) }, () => charge(random));
      const charges = [...new Map(drawn.map((each) => [each.key, each])).values()];
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
      await prepare(client, topic, charges);
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
