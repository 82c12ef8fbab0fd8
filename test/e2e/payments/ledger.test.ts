import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { spawnProcess, until } from "../../support/index.ts";
import type { TestProcess } from "../../support/index.ts";
import { ask, newShopper } from "./client.ts";
import type { Shopper } from "./client.ts";
import { persist } from "./persist.ts";
import { newBuyer, shortTimes, startProviderProcess } from "./provider-stage.ts";
import type { ProviderProcess } from "./provider-stage.ts";
import { openStage, unique } from "./stage.ts";
import type { Stage } from "./stage.ts";

const CHARGES = 40;
const KILLS = 4;

let stage: Stage;
let provider: ProviderProcess;
let urls: readonly string[];
const relays: TestProcess[] = [];

const startRelay = async (): Promise<TestProcess> => {
  const relay = spawnProcess("services/payments/dist/relay-main.js", {
    env: { DATABASE_URL: stage.database.connectionString, KAFKA_BROKERS: "", RELAY_LEASE_MS: "600" },
  });
  relays.push(relay);
  await relay.waitForLine(/Relay started/u);
  return relay;
};

beforeAll(async () => {
  [stage, provider] = await Promise.all([openStage(), startProviderProcess()]);
  const env = { PROVIDER_URL: provider.url, ...shortTimes };
  const replicas = await Promise.all([stage.startReplica({ env }), stage.startReplica({ env })]);
  urls = replicas.map(({ url }) => url);
});
afterAll(async () => {
  await Promise.all(relays.map((relay) => relay.kill("SIGKILL")));
  await Promise.all([stage.close(), provider.close()]);
});

const count = async (text: string): Promise<number> => {
  const { rows } = await stage.pool.query<{ n: number }>(`select (${text})::int as n`);
  return rows[0]?.n ?? -1;
};

const outboxIsEmpty = (): Promise<unknown> =>
  until(async () => (await count("select count(*) from idemkit.outbox_event")) === 0, {
    timeoutMs: 60_000,
    what: "an empty outbox",
  });

/** What an account's balance is, written as the ledger keeps it; `undefined` where nothing was ever booked. */
const balanceOf = async (account: string): Promise<string | undefined> => {
  const { rows } = await stage.pool.query<{ balance: string }>({
    text: "select balance from public.account_balance where account = $1 and currency = 'EUR'",
    values: [account],
  });
  return rows[0]?.balance;
};

/** Each command three times at once, at both replicas. */
const chargeThrice = async ({ token, charge }: Shopper): Promise<void> => {
  const call = { token, key: unique("charge"), body: charge };
  const tries = [0, 1, 2].map((at) => persist(`${urls[at % urls.length]}/payments`, call, { patience: 0.2 }));
  const statuses = (await Promise.all(tries)).map(({ final }) => final.status);
  expect(statuses).toEqual([201, 201, 201]);
};

describe("events without a broker", () => {
  test("take effect once at each consumer, while relays are killed and charges are doubled", async () => {
    const shoppers: Shopper[] = [];
    let killing = true;
    const work = async (): Promise<void> => {
      while (killing || shoppers.length < CHARGES) {
        const shopper = await newShopper(stage, urls[0] ?? "");
        shoppers.push(shopper);
        await chargeThrice(shopper);
      }
    };
    const kill = async (): Promise<void> => {
      for (let killed = 0; killed < KILLS; killed += 1) {
        const before = await count("select count(*) from public.ledger_entry");
        const relay = await startRelay();
        await until(async () => (await count("select count(*) from public.ledger_entry")) > before, {
          timeoutMs: 30_000,
          what: "an entry by a relay that will be killed",
        });
        await relay.kill("SIGKILL");
      }
    };
    await Promise.all([work(), kill().finally(() => (killing = false))]);
    const [first] = await Promise.all([startRelay(), startRelay()]);
    await outboxIsEmpty();

    const orders = await count("select count(*) from public.orders");
    const payments = await count("select count(*) from public.payment");
    expect(payments).toBe(orders);
    expect(payments).toBeGreaterThanOrEqual(CHARGES);
    for (const table of ["ledger_entry", "notification"]) {
      expect(await count(`select count(*) from public.${table}`)).toBe(orders + payments);
      expect(await count(`select count(distinct event_id) from public.${table}`)).toBe(orders + payments);
    }
    expect(await count("select count(*) from idemkit.dead_letter")).toBe(0);
    const taken = (payments * 21).toFixed(4);
    expect(await balanceOf("provider:acme-pay")).toBe(taken);
    expect(await balanceOf("sales")).toBe(`-${taken}`);
    expect(await balanceOf(`customer:${shoppers[0]?.sub}`)).toBe("0.0000");
    await balanced();
    expect(await first?.kill("SIGTERM")).toEqual({ code: 0, signal: null });
  });

  test("book a payment through the provider and what is given back of it", async () => {
    await startRelay();
    const [url = ""] = urls;
    const { token, sub, orderId } = await newBuyer(stage, url);
    const sales = Number(await balanceOf("sales"));
    await ask(`${url}/orders/${orderId}/payment/confirm`, { token, key: unique("key"), body: {} });
    await ask(`${url}/orders/${orderId}/refund`, { token, key: unique("key"), body: { amount: "0.0001" } });
    await outboxIsEmpty();
    const { rows } = await stage.pool.query({
      text: `select debit_account, credit_account, amount from public.ledger_entry where order_id = $1 order by id`,
      values: [orderId],
    });
    expect(rows).toEqual([
      { debit_account: `customer:${sub}`, credit_account: "sales", amount: "21.0000" },
      { debit_account: "provider:acme-pay", credit_account: `customer:${sub}`, amount: "21.0000" },
      { debit_account: "sales", credit_account: "provider:acme-pay", amount: "0.0001" },
    ]);
    expect(await balanceOf(`customer:${sub}`)).toBe("0.0000");
    expect(Number(await balanceOf("sales"))).not.toBe(sales);
    const told = await stage.pool.query<{ subject: string }>({
      text: "select subject from public.notification where order_id = $1 and customer_id = $2 order by id",
      values: [orderId, sub],
    });
    expect(told.rows.map(({ subject }) => subject)).toEqual([
      "we have your order",
      "we have charged you",
      "your order is paid for",
      "you get money back",
    ]);
    await balanced();
  });
});

/** To the last place, and as the entries say. */
const balanced = async (): Promise<void> => {
  const { rows } = await stage.pool.query(`
    with moved as (
      select debit_account as account, currency, amount from public.ledger_entry
      union all select credit_account, currency, -amount from public.ledger_entry),
    kept as (select account, currency, sum(amount) as balance from moved group by account, currency)
    select (select sum(balance) from public.account_balance) as sum,
      (select count(*)::int from kept full join public.account_balance b using (account, currency)
       where kept.balance is distinct from b.balance) as wrong`);
  expect(rows).toEqual([{ sum: "0.0000", wrong: 0 }]);
};
