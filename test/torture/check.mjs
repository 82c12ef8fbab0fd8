import { setTimeout as delay } from "node:timers/promises";

import { checkDelivery } from "idemkit/testing";
import { Kafka, logLevel } from "kafkajs";

/** @typedef {{ event_id: string, key: string }} Row */

const seen = (/** @type {readonly Row[]} */ rows) => rows.map(({ event_id: eventId, key }) => ({ eventId, key }));

/**
 * Waits until nothing moves any more: the outbox is empty, and every event has had its effect or none came for a while.
 * @param {import("pg").Pool} pool
 * @param {{ patienceMs: number }} options
 */
export async function drained(pool, { patienceMs }) {
  const left = `select (select count(*) from idemkit.outbox_event)::int as waiting,
    (select count(*) from sent s where not exists (select from effect e where e.event_id = s.event_id))::int as open`;
  let last = "";
  for (let since = performance.now(); performance.now() - since < patienceMs; await delay(300)) {
    const { rows } = await pool.query(left);
    if (rows[0].waiting === 0 && rows[0].open === 0) return;
    const now = JSON.stringify(rows[0]);
    if (now !== last) since = performance.now();
    last = now;
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
      for (const { key, headers } of batch.messages) {
        records.push({ eventId: String(headers?.["event_id"]), key: String(key) });
      }
    },
  });
  while (records.length < total) await delay(100);
  await consumer.disconnect();
  return records;
}

/**
 * @param {{ pool: import("pg").Pool, brokers: string, topic: string }} options
 */
export async function check({ pool, brokers, topic }) {
  const { rows: sent } = await pool.query("select event_id, key from sent order by key, n");
  const { rows: effects } = await pool.query("select event_id, key from effect order by seq");
  const log = await readLog(brokers, topic);
  const published = checkDelivery(seen(sent), log);
  const applied = checkDelivery(seen(sent), seen(effects));
  const { rows: ledger } = await pool.query(
    `select coalesce(sum(amount), 0)::bigint as balance, count(*)::int as entries from entry`,
  );
  const { rows: wrong } = await pool.query(
    `select count(*)::int as accounts from (select key, sum(cents) as cents from sent group by key) s
     full join (select account, sum(amount) as cents from entry where account <> 'revenue' group by account) e
       on e.account = s.key where s.cents is distinct from e.cents`,
  );
  const { rows: letters } = await pool.query("select count(*)::int as count from idemkit.dead_letter");
  return {
    events: sent.length,
    records: log.length,
    resent: published.resent,
    lost: applied.lost + published.lost,
    duplicated: applied.resent + applied.foreign + published.foreign,
    inverted: applied.inverted,
    invertedInLog: published.inverted,
    balanceCents: Number(ledger[0].balance),
    wrongAccounts: wrong[0].accounts,
    deadLetters: letters[0].count,
    details: [...published.faults, ...applied.faults],
  };
}
