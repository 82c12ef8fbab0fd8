import { setTimeout as delay } from "node:timers/promises";

import { checkDelivery } from "idemkit/testing";
import { Kafka, logLevel } from "kafkajs";

import { oneRow } from "./one-row.mjs";

/**
 * @param {import("pg").Pool} pool
 * @param {string} text
 */
async function seen(pool, text) {
  const { rows } = /** @type {{ rows: { event_id: string, key: string }[] }} */ (await pool.query(text));
  return rows.map(({ event_id: eventId, key }) => ({ eventId, key }));
}

/**
 * One line on where everything is.
 * @param {import("pg").Pool} pool
 */
export async function progress(pool) {
  const names = /** @type {const} */ (["sent", "waiting", "effects"]);
  const text = `select (select count(*) from sent) as sent, (select count(*) from effect) as effects,
    (select count(*) from idemkit.outbox_event) as waiting`;
  const { sent, waiting, effects } = await oneRow(pool, text, names);
  return `${sent} committed, ${waiting} in the outbox, ${effects} effects`;
}

/**
 * Waits until nothing moves any more: the outbox is empty, and every event has had its effect or none came for a while.
 * @param {import("pg").Pool} pool
 * @param {{ patienceMs: number }} options
 */
export async function drained(pool, { patienceMs }) {
  const left = `select (select count(*) from idemkit.outbox_event) as waiting,
    (select count(*) from sent s where not exists (select from effect e where e.event_id = s.event_id)) as open`;
  let last = "";
  for (let since = performance.now(); performance.now() - since < patienceMs;) {
    const { waiting, open } = await oneRow(pool, left, ["waiting", "open"]);
    if (waiting === 0 && open === 0) return;
    const now = `${waiting} ${open}`;
    if (now !== last) since = performance.now();
    last = now;
    await delay(300);
  }
}

/**
 * Every record of the topic in the order of each partition; a key has one partition.
 * @param {string} brokers
 * @param {string} topic
 */
async function readLog(brokers, topic) {
  const kafka = new Kafka({ brokers: [brokers], logLevel: logLevel.NOTHING });
  const admin = kafka.admin();
  await admin.connect();
  const offsets = await admin.fetchTopicOffsets(topic);
  await admin.disconnect();
  const total = offsets.reduce((sum, { offset }) => sum + Number(offset), 0);
  const consumer = kafka.consumer({ groupId: "checker", maxWaitTimeInMs: 200 });
  /** @type {{ eventId: string, key: string }[]} */
  const records = [];
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await consumer.run({
    autoCommit: false,
    eachBatch: async ({ batch }) => {
      for (const { key, headers = {} } of batch.messages) {
        const { event_id: eventId } = headers;
        records.push({ eventId: String(eventId), key: String(key) });
      }
    },
  });
  while (records.length < total) await delay(100);
  await consumer.disconnect();
  return records;
}

/** What the ledger comes to: nothing in all, and for each customer what was charged. */
const balances = `select
  (select coalesce(sum(amount), 0) from entry) as "balanceCents",
  (select count(*) from (select key, sum(cents) as cents from sent group by key) s
   full join (select account, sum(amount) as cents from entry where account <> 'revenue' group by account) e
     on e.account = s.key where s.cents is distinct from e.cents) as "wrongAccounts",
  (select count(*) from idemkit.dead_letter) as "deadLetters"`;

/**
 * @param {{ pool: import("pg").Pool, brokers: string, topic: string }} options
 */
export async function check({ pool, brokers, topic }) {
  const sent = await seen(pool, "select event_id, key from sent order by key, n");
  const effects = await seen(pool, "select event_id, key from effect order by seq");
  const log = await readLog(brokers, topic);
  const published = checkDelivery(sent, log);
  const applied = checkDelivery(sent, effects);
  const ledger = await oneRow(pool, balances, ["balanceCents", "wrongAccounts", "deadLetters"]);
  return {
    events: sent.length,
    records: log.length,
    resent: published.resent,
    lost: applied.lost + published.lost,
    duplicated: applied.resent + applied.foreign + published.foreign,
    inverted: applied.inverted,
    invertedInLog: published.inverted,
    ...ledger,
    details: [...published.faults, ...applied.faults],
  };
}
