import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ask, newShopper, orderBody } from "./client.ts";
import { failCommits, waitingEvents, waitingTypes } from "./event-rows.ts";
import { newBuyer, shortTimes, startProviderProcess } from "./provider-stage.ts";
import type { ProviderProcess } from "./provider-stage.ts";
import { openStage, unique } from "./stage.ts";
import type { Stage } from "./stage.ts";

let stage: Stage;
let provider: ProviderProcess;
let url: string;

beforeAll(async () => {
  [stage, provider] = await Promise.all([openStage(), startProviderProcess()]);
  ({ url } = await stage.startReplica({ env: { PROVIDER_URL: provider.url, ...shortTimes } }));
});
afterAll(() => Promise.all([stage.close(), provider.close()]));

describe("an order's event", () => {
  test("is there once, however often the order is sent", async () => {
    const sub = unique("alice");
    const call = { token: await stage.token(sub), key: unique("order"), body: orderBody };
    const answers = await Promise.all(Array.from({ length: 5 }, () => ask(`${url}/orders`, call)));
    await ask(`${url}/orders`, call);
    const orderId = String(answers.find(({ status }) => status === 201)?.json["id"]);
    expect(await waitingEvents(stage, orderId)).toEqual([
      {
        type: "order.created",
        topic: "order",
        data: { orderId, customerId: sub, total: "21.0000", currency: "EUR" },
      },
    ]);
  });

  test("is not there where the order is refused", async () => {
    const before = await countWaiting();
    const body = { ...orderBody, items: [{ sku: "teapot", quantity: 1, unitPrice: "0" }] };
    const answer = await ask(`${url}/orders`, {
      token: await stage.token("bob"),
      key: unique("order"),
      body,
    });
    expect(answer.status).toBe(400);
    expect(await countWaiting()).toBe(before);
  });
});

describe("a charge's event", () => {
  test("is there once: a replay adds none, nor does the same payment under another key", async () => {
    const { token, sub, charge } = await newShopper(stage, url);
    const key = unique("charge");
    const first = await ask(`${url}/payments`, { token, key, body: charge });
    expect(first.status).toBe(201);
    expect((await ask(`${url}/payments`, { token, key, body: charge })).status).toBe(201);
    expect((await ask(`${url}/payments`, { token, key: unique("charge"), body: charge })).status).toBe(200);
    const { orderId } = charge;
    const events = await waitingEvents(stage, orderId);
    expect(events.map(({ type }) => type)).toEqual(["order.created", "payment.charged"]);
    expect(events[1]?.data).toEqual({
      orderId,
      customerId: sub,
      paymentId: first.json["id"],
      provider: "acme-pay",
      amount: "21.0000",
      currency: "EUR",
    });
  });

  test("is not there where the charge is rolled back, and is when it is sent again", async () => {
    const { token, charge } = await newShopper(stage, url);
    const key = unique("charge");
    const body = { ...charge, externalPaymentId: unique("doomed") };
    const heal = await failCommits(stage, "payment", "new.external_payment_id like 'doomed%'");
    expect((await ask(`${url}/payments`, { token, key, body })).status).toBe(500);
    expect(await waitingTypes(stage, charge.orderId)).toEqual(["order.created"]);
    await heal();
    expect((await ask(`${url}/payments`, { token, key, body })).status).toBe(201);
    expect(await waitingTypes(stage, charge.orderId)).toEqual(["order.created", "payment.charged"]);
  });

  test("is not there where the charge is refused", async () => {
    const { token, charge } = await newShopper(stage, url);
    const body = { ...charge, amount: "20.00" };
    expect((await ask(`${url}/payments`, { token, key: unique("charge"), body })).status).toBe(422);
    expect(await waitingTypes(stage, charge.orderId)).toEqual(["order.created"]);
  });
});

describe("events of what goes through the provider", () => {
  test("tell once of a charge and of each refund, whatever is repeated", async () => {
    const { token, sub, orderId } = await newBuyer(stage, url);
    const twice = async (path: string, body: unknown): Promise<readonly number[]> => {
      const call = { method: "POST", token, key: unique("key"), body };
      const first = await ask(`${url}${path}`, call);
      return [first.status, (await ask(`${url}${path}`, call)).status];
    };
    expect(await twice(`/orders/${orderId}/payment/confirm`, {})).toEqual([200, 200]);
    expect(await twice(`/orders/${orderId}/refund`, { amount: "5.00" })).toEqual([200, 200]);
    expect(await twice(`/orders/${orderId}/refund`, {})).toEqual([200, 200]);
    const events = await waitingEvents(stage, orderId);
    expect(events.map(({ type, data }) => [type, data["amount"], data["customerId"]])).toEqual([
      ["order.created", undefined, sub],
      ["payment.charged", "21.0000", sub],
      ["order.paid", undefined, sub],
      ["payment.refunded", "5.0000", sub],
      ["payment.refunded", "16.0000", sub],
    ]);
  });

  test("tell nothing of a charge that the provider refuses", async () => {
    const { token, orderId } = await newBuyer(stage, url);
    await provider.turn({ next: ["refuse"] });
    const call = { method: "POST", token, key: unique("key"), body: {} };
    expect((await ask(`${url}/orders/${orderId}/payment/confirm`, call)).status).toBeGreaterThanOrEqual(400);
    expect(await waitingTypes(stage, orderId)).toEqual(["order.created"]);
  });
});

const countWaiting = async (): Promise<number> => {
  const { rows } = await stage.pool.query<{ n: number }>(
    "select count(*)::int as n from idemkit.outbox_event",
  );
  return rows[0]?.n ?? -1;
};
