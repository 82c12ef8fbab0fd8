import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { startSaga, startSagas } from "idemkit";
import type { PostgresDatabase, Running } from "idemkit";
import { fromPg } from "idemkit/pg";
import { withEffectCrashPoints } from "idemkit/testing";
import type { Pool, PoolClient } from "pg";
import { expect, test } from "vitest";

import { migratePayments } from "../../services/payments/src/adapters/out/postgres/migrate.ts";
import { providerPayments } from "../../services/payments/src/adapters/out/postgres/provider-payments.ts";
import { stock } from "../../services/payments/src/adapters/out/postgres/stock.ts";
import { httpProvider } from "../../services/payments/src/adapters/out/provider/http-provider.ts";
import { openLedger } from "../../services/payments/src/provider/ledger.ts";
import type { LedgerEntry } from "../../services/payments/src/provider/ledger.ts";
import { startProvider } from "../../services/payments/src/provider/server.ts";
import { checkoutSaga } from "../../services/payments/src/use-cases/checkout-saga.ts";
import type { CheckoutSaga } from "../../services/payments/src/use-cases/checkout-saga.ts";
import { createDatabase, until } from "../support/index.ts";

const sagas = 1000;
/** How likely each durable step is to kill its runner's work, and each local step to throw, before or after its writes. */
const crashRate = 0.01;
const throwRate = 0.1;

function maybeThrow(): void {
  if (Math.random() < throwRate) throw new Error("broken");
}

/** The same members, each of which may fail before or after its work. */
function failing<T extends object>(members: T): T {
  const wrapped = Object.entries(members).map(([name, work]) => [
    name,
    async (...args: unknown[]) => {
      maybeThrow();
      const result: unknown = await (work as (...given: unknown[]) => Promise<unknown>)(...args);
      maybeThrow();
      return result;
    },
  ]);
  return Object.fromEntries(wrapped) as T;
}

/** A runner whose work ends in the middle, as with its process: the lease has to end first. */
function dying(pool: Pool): PostgresDatabase<PoolClient> {
  return withEffectCrashPoints(fromPg(pool), (point) => {
    if (point !== "before-claim" && Math.random() < crashRate) throw new Error("killed");
  });
}

function run(pool: Pool, saga: CheckoutSaga<PoolClient>): Running {
  const logger = { error: () => {} };
  return startSagas(dying(pool), [saga], {
    pollMs: 50,
    leaseMs: 1500,
    heartbeatMs: 300,
    concurrency: 20,
    logger,
  });
}

/** An order in each row: every third holds an item that can't be sold. */
async function insertOrders(pool: Pool): Promise<string[]> {
  await pool.query(`
    insert into public.stock (sku, on_hand, recalled) values ('teapot', 1000000, false), ('unsafe', 1000000, true)`);
  const { rows } = await pool.query<{ id: string }>({
    text: `
      with made as (
        insert into public.orders (customer_id, status, total, currency)
        select 'customer', 'pending', 21, 'EUR' from generate_series(1, $1) returning id)
      , items as (
        insert into public.order_item (order_id, position, sku, quantity, unit_price)
        select id, 0, case when row_number() over () % 3 = 0 then 'unsafe' else 'teapot' end, 2, 10.5 from made)
      select id from made`,
    values: [sagas],
  });
  return rows.map(({ id }) => id);
}

async function statesOf(pool: Pool): Promise<Record<string, number>> {
  const { rows } = await pool.query<{ state: string; n: number }>(
    "select state, count(*)::integer as n from idemkit.saga group by state",
  );
  return Object.fromEntries(rows.map(({ state, n }) => [state, n]));
}

/** Sagas whose money is not where their state says, by the provider's own books. */
async function disagreements(pool: Pool, entries: readonly LedgerEntry[]): Promise<string[]> {
  const { rows } = await pool.query<{ id: string; state: string; status: string; order_status: string }>(`
    select p.id, s.state, p.status, o.status as order_status
    from idemkit.saga s join public.payment p on p.idempotency_key = s.saga_id::text
    join public.orders o on o.id = p.order_id`);
  const charges = entries.filter(({ kind }) => kind === "charge");
  const refunds = entries.filter(({ kind }) => kind === "refund");
  return rows.flatMap(({ id, state, status, order_status: order }) => {
    const own = charges.filter(({ reference }) => reference === id);
    const back = refunds.filter(({ reference }) => own.some((charge) => charge.id === reference));
    const found = `${state}: ${status}, ${order}, ${own.length} charges, ${back.length} refunds`;
    const fits = [
      "committed: paid, paid, 1 charges, 0 refunds",
      "compensated: reversed, pending, 1 charges, 1 refunds",
      "compensated: reversed, pending, 0 charges, 0 refunds",
    ];
    return fits.includes(found) ? [] : [found];
  });
}

test("a thousand checkouts with a random fault at every step end committed or undone, as stock and ledger say", async () => {
  await using created = await createDatabase();
  const pool = created.pool({ max: 20 });
  await migratePayments(pool);
  const folder = await mkdtemp(join(tmpdir(), "payments-provider-"));
  const ledgerFile = join(folder, "ledger.jsonl");
  const faults = [
    "timeout-after",
    "timeout-before",
    "cut-after",
    "cut-before",
    "error",
    "slow",
    "decline",
  ] as const;
  const switches = { faultRate: 0.3, faults, slowMs: 50, seed: Math.floor(Math.random() * 1e9) };
  const psp = await startProvider({ port: 0, ledgerFile, switches });
  const provider = httpProvider({ url: new URL(psp.url), honoursKeys: true, deadlineMs: 500, graceMs: 500 });
  const saga = checkoutSaga({ provider, payments: failing(providerPayments), stock: failing(stock) });
  const database = fromPg(pool);
  const orders = await insertOrders(pool);
  const runners = [run(pool, saga), run(pool, saga)];
  await Promise.all(
    orders.map((orderId) => startSaga(database, saga, { sagaId: randomUUID(), input: { orderId } })),
  );
  const ended = async (): Promise<boolean> => {
    const { committed = 0, compensated = 0, uncertain = 0 } = await statesOf(pool);
    return committed + compensated + uncertain === sagas;
  };
  await until(ended, { timeoutMs: 240_000, pollMs: 200, what: "the end of every saga" });
  await Promise.all(runners.map((runner) => runner.stop()));
  await psp.stop();
  const states = await statesOf(pool);
  console.log(`seed ${switches.seed}: ${JSON.stringify(states)}`);
  expect(states["uncertain"]).toBeUndefined();
  const books = openLedger(ledgerFile);
  expect(await disagreements(pool, books.entries)).toEqual([]);
  books.close();
  const { rows } = await pool.query(
    "select sku, reserved, 1000000 - on_hand as sold from public.stock order by sku",
  );
  expect(rows).toEqual([
    { sku: "teapot", reserved: 0, sold: 2 * (states["committed"] ?? 0) },
    { sku: "unsafe", reserved: 0, sold: 0 },
  ]);
  expect(states["committed"]).toBeGreaterThan(0);
  expect(states["compensated"]).toBeGreaterThan(0);
  await rm(folder, { recursive: true, force: true });
}, 300_000);
