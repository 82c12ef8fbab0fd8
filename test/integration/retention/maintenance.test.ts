import { startMaintenance } from "idemkit";
import { fromPg } from "idemkit/pg";
import type pg from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";

import { eventDayAt } from "../../../src/maintenance/event-day.ts";
import { until } from "../../support/index.ts";
import { openBench } from "../inbox/harness.ts";
import type { Bench } from "../inbox/harness.ts";

let bench: Bench;
let database: ReturnType<typeof fromPg<pg.Pool>>;
beforeEach(async () => {
  bench = await openBench();
  database = fromPg(bench.pool);
});
afterEach(() => bench.database.drop());

test("maintenance runs the rounds, and a role that may not make partitions doesn't keep it from the rest", async () => {
  const rounds: string[][] = [];
  const running = startMaintenance(database, {
    logger: { info: () => {}, error: (message) => rounds.push([message]) },
    onRetained: ({ made }) => rounds.push([...made]),
  });
  await until(() => rounds.length > 0, { what: "a round" });
  await running.stop();
  expect(rounds[0]).toHaveLength(4);

  await bench.pool.query("alter table idemkit.processed_event owner to pg_monitor");
  await bench.pool
    .query("create role plain login password 'x' in role pg_read_all_data, pg_write_all_data")
    .catch(() => {});
  await bench.pool.query("grant usage on schema idemkit to plain");
  const url = new URL(bench.database.connectionString);
  url.username = "plain";
  url.password = "x";
  const pool = bench.database.pool({ connectionString: url.href });
  const errors: string[] = [];
  const deleted: number[] = [];
  await bench.pool.query(`drop table idemkit.${eventDayAt(Date.now(), 3).name}`);
  const limited = startMaintenance(fromPg(pool), {
    logger: { info: () => {}, error: (message) => errors.push(message) },
    onDeleted: (count) => deleted.push(count),
  });
  await until(() => deleted.length > 0, { what: "the deletion of expired records" });
  await limited.stop();
  await pool.end();
  expect(errors).toEqual([expect.stringContaining("days of processed_event failed")]);
});

test("retention options out of range are errors before any I/O", () => {
  expect(() => startMaintenance(database, { processedEvents: { retentionHours: 0 } })).toThrow(
    /retentionHours/,
  );
  expect(() => startMaintenance(database, { processedEvents: { aheadDay: 1 } as object })).toThrow(
    /did you mean aheadDays/,
  );
});
