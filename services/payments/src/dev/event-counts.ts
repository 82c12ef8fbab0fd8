import { setTimeout as delay } from "node:timers/promises";
import type { Pool } from "pg";

/** What the database holds of some orders, each row of which an event tells of, and of what became of those events. */
export interface EventCounts {
  readonly created: number;
  readonly charged: number;
  readonly paid: number;
  readonly refunded: number;
  /** Events that no relay has handed on and deleted yet. */
  readonly waiting: number;
  readonly entries: number;
  readonly notifications: number;
}

const POLL_MS = 20;
const PATIENCE_MS = 30_000;

const text = `
  with mine as (select id from public.orders where id = $1::uuid or customer_id = $2)
  select (select count(*)::int from mine) as created,
         (select count(*)::int from public.payment
          where order_id in (select id from mine) and status in ('pending', 'paid')) as charged,
         (select count(*)::int from public.payment
          where order_id in (select id from mine) and status = 'paid') as paid,
         (select count(*)::int from public.refund
          where order_id in (select id from mine) and status = 'refunded') as refunded,
         (select count(*)::int from idemkit.outbox_event where key in (select id::text from mine)) as waiting,
         (select count(*)::int from public.ledger_entry where order_id in (select id from mine)) as entries,
         (select count(*)::int from public.notification where order_id in (select id from mine)) as notifications`;

/** Whose orders are meant. */
export type WhichOrders = { readonly orderId: string } | { readonly customerId: string };

export const eventCounts = async (pool: Pool, which: WhichOrders): Promise<EventCounts> => {
  const values = "orderId" in which ? [which.orderId, null] : [null, which.customerId];
  const { rows } = await pool.query<EventCounts>({ text, values });
  const [counts] = rows;
  if (counts === undefined) {
    throw new Error("a count without a row");
  }
  return counts;
};

/** Waits until `condition` holds. @throws Error naming `what` when it takes too long */
export const untilTrue = async (
  what: string,
  condition: () => Promise<boolean>,
  signal: AbortSignal,
): Promise<void> => {
  const deadline = performance.now() + PATIENCE_MS;
  while (!(await condition())) {
    if (performance.now() > deadline) {
      throw new Error(`${what}: not within ${PATIENCE_MS} ms`);
    }
    await delay(POLL_MS, undefined, { signal });
  }
};
