import type { Customer } from "./customer.ts";
import { newCharge } from "./customer.ts";
import { describe } from "./describe.ts";
import { eventCounts, untilTrue } from "./event-counts.ts";
import type { EventCounts, WhichOrders } from "./event-counts.ts";
import type { EventProcesses } from "./event-processes.ts";
import type { Scene } from "./scene.ts";

/** Where the events of the calls so far have come to, what a second sending does, and what the ledger says. */
export const showEvents = async (scene: Scene, customer: Customer, events: EventProcesses): Promise<void> => {
  scene.say("\nEvents of the orders and payments so far, handled by two consumers");
  await allHandled(scene, { customerId: customer.sub });
  scene.say(`  ${line(await eventCounts(scene.pool, { customerId: customer.sub }))}`);
  await sendTwice(scene, customer, events);
  await showLedger(scene, customer);
};

const isHandled = ({ created, charged, refunded, paid, entries, notifications }: EventCounts): boolean =>
  entries === created + charged + refunded && notifications === entries + paid;

const allHandled = (scene: Scene, which: WhichOrders): Promise<void> =>
  untilTrue(
    "both consumers have handled all events",
    async () => {
      const counts = await eventCounts(scene.pool, which);
      return counts.waiting === 0 && isHandled(counts);
    },
    scene.stopped,
  );

const line = (counts: EventCounts): string => {
  const { created, charged, refunded, paid, waiting, entries, notifications } = counts;
  const told = `order.created ${created}, payment.charged ${charged}, payment.refunded ${refunded}, order.paid ${paid}`;
  return `events: ${told}; waiting: ${waiting}; rows: ledger_entry ${entries}, notification ${notifications}`;
};

/**
 * Holds the event's row in the outbox, so that the relay can hand the event on and not delete it, and kills the relay
 * there. The next one finds the event and sends it again.
 */
const sendTwice = async (scene: Scene, customer: Customer, events: EventProcesses): Promise<void> => {
  const { pool, say, stopped } = scene;
  say("\nSIGKILL of the relay between handing an event on and deleting it");
  const charge = await newCharge(customer, "twice");
  const orderId = charge["orderId"] ?? "";
  await allHandled(scene, { orderId });
  await events.stopRelay();
  say(
    `  without a relay: ${describe(await customer.post("/payments", charge, `charge-twice-${customer.sub}`))}`,
  );
  say(`  ${line(await eventCounts(pool, { orderId }))}`);
  const before = duplicates(events);
  await killBeforeDelete(scene, orderId, events);
  say("  a relay is started, and killed when the event had been handled:");
  say(`  ${line(await eventCounts(pool, { orderId }))}`);
  await events.startRelay();
  await untilTrue("the event was sent again", async () => duplicates(events) >= before + 2, stopped);
  await allHandled(scene, { orderId });
  const suppressed = duplicates(events) - before;
  say(`  the next relay sends it again; suppressed as duplicates: ${suppressed}, one at each consumer`);
  say(`  ${line(await eventCounts(pool, { orderId }))}`);
};

const duplicates = (events: EventProcesses): number =>
  events.count("ledger", "duplicate") + events.count("notifications", "duplicate");

const killBeforeDelete = async (scene: Scene, orderId: string, events: EventProcesses): Promise<void> => {
  const holder = await scene.pool.connect();
  try {
    await holder.query("begin");
    const { rows } = await holder.query<{ pid: number }>({
      text: "select pg_backend_pid() as pid from idemkit.outbox_event where key = $1 for update",
      values: [orderId],
    });
    await events.startRelay();
    const blocked = async (): Promise<readonly number[]> => {
      const found = await scene.pool.query<{ pid: number }>({
        text: "select pid from pg_stat_activity where $1 = any (pg_blocking_pids(pid))",
        values: [rows[0]?.pid],
      });
      return found.rows.map(({ pid }) => pid);
    };
    await untilTrue(
      "the relay has handed the event on",
      async () => (await blocked()).length > 0 && isHandled(await eventCounts(scene.pool, { orderId })),
      scene.stopped,
    );
    const victims = await blocked();
    await events.killRelay();
    // Its server process waits for the row and would delete it: as where the machine dies, it goes as well.
    await scene.pool.query({
      text: "select pg_terminate_backend(pid) from unnest($1::int[]) as pid",
      values: [victims],
    });
    await untilTrue(
      "the relay's connection is gone",
      async () => (await blocked()).length === 0,
      scene.stopped,
    );
  } finally {
    holder.release(true);
  }
};

const showLedger = async ({ pool, say }: Scene, { sub }: Customer): Promise<void> => {
  say("\nThe ledger, by double entry");
  const { rows } = await pool.query<{ account: string; currency: string; balance: string }>({
    text: `
      select account, currency, balance from public.account_balance
      where account = $1 or account not like 'customer:%' order by account, currency`,
    values: [`customer:${sub}`],
  });
  for (const { account, currency, balance } of rows) {
    say(`  ${account.padEnd(24)} ${balance.padStart(12)} ${currency}`);
  }
  const { rows: sums } = await pool.query<{ sum: string; accounts: string; entries: string }>(`
    select coalesce(sum(balance), 0) as sum, count(*) as accounts,
           (select count(*) from public.ledger_entry) as entries
    from public.account_balance`);
  const [total] = sums;
  say(`  all ${total?.accounts} accounts, ${total?.entries} entries: the balances add up to ${total?.sum}`);
};
