// Sends events again that are in the topic already: what a network, a retry or an operator's replay does.
import { setTimeout as delay } from "node:timers/promises";

import { oneRow } from "./one-row.mjs";

/** An event that has left the outbox was acknowledged, so its first occurrence lies before the re-send. */
const due = `select s.event_id, s.key, s.n, s.cents from sent s
where s.resend_at <= now() and not s.resent
  and not exists (select from idemkit.outbox_event o where o.event_id = s.event_id) limit 500`;

const open = "select count(*) as left from sent where resend_at is not null and not resent";

/**
 * @param {{ pool: import("pg").Pool, topic: string, publisher: import("idemkit").Publisher }} options
 */
export function resender({ pool, topic, publisher }) {
  const stopping = new AbortController();

  /** @returns {Promise<number>} how many were sent */
  async function round() {
    const { rows } = /** @type {{ rows: { event_id: string, key: string, n: number, cents: string }[] }} */ (
      await pool.query(due)
    );
    const messages = rows.map(({ event_id: eventId, key, n, cents }) => ({
      eventId,
      type: "payment.charged",
      topic,
      key,
      payload: new TextEncoder().encode(JSON.stringify({ n, cents: Number(cents) })),
      headers: {},
    }));
    const results = messages.length === 0 ? [] : await publisher.publish(messages);
    const sent = messages.filter((_message, at) => results[at]?.published === "acknowledged");
    await pool.query("update sent set resent = true where event_id = any($1)", [
      sent.map(({ eventId }) => eventId),
    ]);
    return sent.length;
  }

  async function rounds() {
    while (!stopping.signal.aborted) {
      await round().catch(() => {});
      await delay(200);
    }
  }

  const ended = rounds();
  return {
    /** Sends what is still due, whenever that is. */
    finish: async () => {
      stopping.abort();
      await ended;
      await pool.query("update sent set resend_at = now() where resend_at is not null and not resent");
      for (let tries = 0; tries < 100;) {
        const { left } = await oneRow(pool, open, ["left"]);
        if (left === 0) return;
        if ((await round().catch(() => 0)) === 0) {
          tries += 1;
          await delay(200);
        }
      }
      throw new Error("the re-sends could not be finished");
    },
  };
}
