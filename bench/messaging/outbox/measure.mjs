import { setTimeout as delay } from "node:timers/promises";

import { checkDelivery } from "idemkit/testing";
import pg from "pg";
import { v7 } from "uuid";

/** @typedef {import("./contender.mjs").Contender} Contender */
/** @typedef {import("./contender.mjs").BenchEvent} BenchEvent */

/**
 * @typedef {object} Drain
 * @property {number} rate events a second, from the start to the last first delivery
 * @property {number} lost committed, not delivered in time, and not waiting either
 * @property {number} duplicated delivered again
 * @property {number} inverted first deliveries behind a later event of their key
 * @property {number} abandoned given up by the contender itself
 * @property {number} late still waiting when the time was over
 * @property {number} walBytes an event, written while draining
 * @property {number} deadRows an event, left in the tables
 */

const keys = 2000;
/** Rows of one transaction of the filler. */
const chunk = 500;
/** How long a drain may take; what is left then is counted as late. */
const maxDrainMs = 60_000;

/** @param {number} count @returns {BenchEvent[]} */
export function eventsOf(count) {
  return Array.from({ length: count }, (_, n) => ({
    eventId: v7(),
    key: `order-${n % keys}`,
    payload: { amount: "12.50", note: "x".repeat(120) },
  }));
}

/** @param {Contender} contender @param {readonly BenchEvent[]} events */
export async function fill(contender, events) {
  for (let from = 0; from < events.length; from += chunk) {
    await contender.enqueue(events.slice(from, from + chunk));
  }
}

/** @param {pg.Client} admin */
async function walPosition(admin) {
  const { rows } = await admin.query(
    "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as bytes",
  );
  return Number(rows[0].bytes);
}

/** @param {pg.Client} admin */
async function deadRows(admin) {
  const { rows } = await admin.query(
    "select coalesce(sum(n_dead_tup), 0)::float8 as dead from pg_stat_user_tables",
  );
  return Number(rows[0].dead);
}

/**
 * Commits a backlog, then starts the contender and waits until all of it was delivered.
 * @param {Contender} contender
 * @param {{ connectionString: string, count: number, publishMs: number }} options
 * @returns {Promise<Drain>}
 */
export async function drain(contender, { connectionString, count, publishMs }) {
  const admin = new pg.Client({ connectionString });
  await admin.connect();
  const events = eventsOf(count);
  await fill(contender, events);
  const before = { wal: await walPosition(admin), dead: await deadRows(admin) };

  /** @type {import("./contender.mjs").Delivered[]} */
  const log = [];
  const first = new Set();
  const startedMs = performance.now();
  let endedMs = startedMs;
  const stop = await contender.start(async (batch) => {
    if (publishMs > 0) await delay(publishMs);
    for (const event of batch) {
      log.push(event);
      if (!first.has(event.eventId)) endedMs = performance.now();
      first.add(event.eventId);
    }
  });
  while (performance.now() - startedMs < maxDrainMs && !(await isDone(contender, first, count))) {
    await delay(2);
  }
  await stop();
  const wal = (await walPosition(admin)) - before.wal;
  await delay(1100); // the statistics of a connection are sent once a second
  const { waiting, abandoned } = await contender.left();
  const { lost, resent, inverted } = checkDelivery(events, log);
  const result = {
    rate: first.size / ((endedMs - startedMs) / 1000),
    lost: Math.max(0, lost - waiting - abandoned),
    duplicated: resent,
    inverted,
    abandoned,
    late: waiting,
    walBytes: wal / count,
    deadRows: ((await deadRows(admin)) - before.dead) / count,
  };
  await admin.end();
  return result;
}

/** All delivered, or all that is left given up. @param {Contender} contender @param {Set<unknown>} first @param {number} count */
async function isDone(contender, first, count) {
  if (first.size >= count) return true;
  if (first.size < count * 0.9) return false;
  const { waiting, abandoned } = await contender.left();
  return waiting === 0 && abandoned > 0;
}

/**
 * From the commit of a lone event to its delivery, in milliseconds.
 * @param {Contender} contender
 * @param {{ count: number }} options
 */
export async function latency(contender, { count }) {
  /** @type {Map<string, number>} */
  const deliveredAt = new Map();
  const stop = await contender.start(async (batch) => {
    for (const { eventId } of batch) deliveredAt.set(eventId, performance.now());
  });
  await delay(1000);
  const waits = [];
  for (const event of eventsOf(count)) {
    await contender.enqueue([event]);
    const committedMs = performance.now();
    while (!deliveredAt.has(event.eventId) && performance.now() - committedMs < 5000) await delay(0);
    waits.push((deliveredAt.get(event.eventId) ?? Number.POSITIVE_INFINITY) - committedMs);
    await delay(Math.random() * 20);
  }
  await stop();
  const sorted = [...waits].sort((a, b) => a - b);
  const at = (/** @type {number} */ part) => Math.max(0, sorted[Math.floor(part * (sorted.length - 1))] ?? 0);
  return { p50Ms: at(0.5), p95Ms: at(0.95) };
}
