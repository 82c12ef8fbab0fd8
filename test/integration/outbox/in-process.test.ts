import { createInbox, enqueue, inProcessPublisher, outboxStatus } from "idemkit";
import { expect, test } from "vitest";

import { until } from "../../support/index.ts";
import { createOutbox, order, relay, send } from "./support.ts";

test("without a broker events reach every consumer of the process once, and what these send goes on", async () => {
  const outbox = await createOutbox();
  const { database, pool } = outbox;
  await pool.query("create table if not exists entry (consumer text, key text, number int)");
  await pool.query("truncate entry, idemkit.processed_event");
  const ledger = createInbox(
    { database, consumer: "ledger" },
    {
      "order.created": async ({ key, aggregateVersion }, { tx }) => {
        await tx.query("insert into entry values ('ledger', $1, $2)", [key, aggregateVersion]);
        await enqueue(tx, { type: "ledger.booked", key, payload: {}, aggregateVersion: 1 });
      },
      "ledger.booked": () => {},
    },
  );
  let failures = 1;
  const mail = createInbox(
    { database, consumer: "mail" },
    {
      "order.created": async ({ key, aggregateVersion }, { tx }) => {
        await tx.query("insert into entry values ('mail', $1, $2)", [key, aggregateVersion]);
      },
      "ledger.booked": async ({ key }, { tx }) => {
        await tx.query("insert into entry values ('mail', $1, 99)", [key]);
      },
    },
  );
  // The second receiver is away once: the first gets the event again then, and must not book it twice.
  relay(
    database,
    inProcessPublisher([
      ledger.process,
      async (event, options) => {
        failures -= 1;
        if (failures >= 0) throw new Error("away");
        await mail.process(event, options);
      },
    ]),
  );
  await send(database, order("order-1", 1), order("order-1", 2), order("order-2", 1));
  await until(async () => {
    const { rows } = await pool.query<{ n: number }>("select count(*)::int as n from entry");
    return rows[0]?.n === 9 && (await outboxStatus(database)).unpublished === 0;
  });
  const { rows } = await pool.query("select consumer, key, number from entry order by consumer, key, number");
  expect(rows.map((row: object) => Object.values(row).join(" "))).toEqual([
    "ledger order-1 1",
    "ledger order-1 2",
    "ledger order-2 1",
    "mail order-1 1",
    "mail order-1 2",
    "mail order-1 99",
    "mail order-1 99",
    "mail order-2 1",
    "mail order-2 99",
  ]);
});
