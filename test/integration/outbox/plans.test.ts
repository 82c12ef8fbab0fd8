import { expect, test } from "vitest";

import { statementOf } from "../../../src/postgres/statement.ts";
import { createOutbox } from "./support.ts";

const fill = `
  insert into idemkit.outbox_event (shard, event_id, topic, key, type, headers, payload)
  select n % 16, gen_random_uuid(), 'order', 'order-' || n % 500, 'order.created', null, convert_to(repeat('x', 150), 'UTF8')
  from generate_series(1, $1::int) as n`;

test("the head of a backlog is read from the primary key, also while the statistics know nothing of it", async () => {
  const { client } = await createOutbox();
  const own = await client();
  // Inside the transaction, where no autovacuum can see it.
  await own.query("begin");
  await own.query(fill, [100_000]);
  const { rows } = await own.query<{ "QUERY PLAN": string }>(
    `explain ${statementOf("outbox-read", "idemkit").text}`,
    [3, 5000, 8_000_000],
  );
  await own.query("rollback");
  own.release();
  const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
  expect(plan).toContain("Index Scan using outbox_event_pkey");
  expect(plan).not.toContain("Sort");
});
