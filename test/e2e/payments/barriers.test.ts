import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../support/index.ts";
import { ask, countPayments, newCharge, newShopper } from "./client.ts";
import type { ChargeBody, Shopper } from "./client.ts";
import { lockOrder } from "./row-lock.ts";
import { openStage, unique } from "./stage.ts";
import type { Replica, Stage } from "./stage.ts";

let stage: Stage;
let service: Replica;

beforeAll(async () => {
  stage = await openStage();
  service = await stage.startReplica();
});
afterAll(() => stage.close());

const pay = ({ token }: Shopper, charge: ChargeBody, key = unique("key")) =>
  ask(`${service.url}/payments`, { token, key, body: charge });

/** As time does it: the record is gone, the payment stays. */
const expireRecord = (key: string): Promise<unknown> =>
  stage.pool.query({
    text: "update idemkit.idempotency_record set expires_at = now() - interval '1 second' where key = $1",
    values: [key],
  });

describe("the barrier of the provider's payment", () => {
  test("answers the same charge under another key with 200 and the existing payment", async () => {
    const shopper = await newShopper(stage, service.url);
    const first = await pay(shopper, shopper.charge);
    const second = await pay(shopper, shopper.charge);
    expect(second.status).toBe(200);
    expect(second.text).toBe(first.text);
    expect(second.headers.has("idempotent-replayed")).toBe(false);
    expect(await countPayments(stage, shopper.charge.orderId)).toBe(1);
  });

  test("also when both keys arrive at the same moment", async () => {
    const shopper = await newShopper(stage, service.url);
    const lock = await lockOrder(stage, shopper.charge.orderId);
    const both = [1, 2, 3].map(() => pay(shopper, shopper.charge));
    await lock.victim();
    await lock.release();
    const answers = await Promise.all(both);
    expect(answers.map((answer) => answer.status).toSorted((a, b) => a - b)).toEqual([200, 200, 201]);
    expect(new Set(answers.map((answer) => answer.text)).size).toBe(1);
    expect(await countPayments(stage, shopper.charge.orderId)).toBe(1);
  });

  test("answers 409 where the order differs, and replays that under its key", async () => {
    const shopper = await newShopper(stage, service.url);
    await pay(shopper, shopper.charge);
    const other = {
      ...(await newCharge(service.url, shopper.token)),
      externalPaymentId: shopper.charge.externalPaymentId,
    };
    const key = unique("key");
    const answer = await pay(shopper, other, key);
    expect(answer.status).toBe(409);
    expect(answer.json).toMatchObject({ code: "payment_conflict", field: "orderId" });
    const again = await pay(shopper, other, key);
    expect(again.text).toBe(answer.text);
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect(await countPayments(stage, other.orderId)).toBe(0);
  });

  test("answers 409 where the amount differs", async () => {
    const shopper = await newShopper(stage, service.url);
    await pay(shopper, shopper.charge);
    const body = { items: [{ sku: "cup", quantity: 1, unitPrice: "5" }], currency: "EUR" };
    const order = await ask(`${service.url}/orders`, { token: shopper.token, key: unique("key"), body });
    const charge = { ...shopper.charge, orderId: String(order.json["id"]), amount: "5.00" };
    const answer = await pay(shopper, charge);
    expect(answer.json).toMatchObject({
      code: "payment_conflict",
      errors: [expect.objectContaining({ field: "orderId" }), expect.objectContaining({ field: "amount" })],
    });
  });

  test("shows nothing of another customer's payment", async () => {
    const alice = await newShopper(stage, service.url);
    const bob = await newShopper(stage, service.url);
    const payment = await pay(alice, alice.charge);
    const answer = await pay(bob, { ...bob.charge, externalPaymentId: alice.charge.externalPaymentId });
    expect(answer.status).toBe(409);
    for (const secret of [alice.sub, alice.charge.orderId, String(payment.json["id"])]) {
      expect(answer.text).not.toContain(secret);
    }
  });

  test("keeps the providers apart", async () => {
    const shopper = await newShopper(stage, service.url);
    expect((await pay(shopper, shopper.charge)).status).toBe(201);
    expect((await pay(shopper, { ...shopper.charge, provider: "other-pay" })).status).toBe(201);
  });
});

describe("the barrier of the key", () => {
  test("finds the payment after the record has expired", async () => {
    const shopper = await newShopper(stage, service.url);
    const key = unique("key");
    const first = await pay(shopper, shopper.charge, key);
    await expireRecord(key);
    const late = await pay(shopper, shopper.charge, key);
    expect(late.status).toBe(200);
    expect(late.text).toBe(first.text);
    expect(await countPayments(stage, shopper.charge.orderId)).toBe(1);
  });

  test("makes no second payment of the order, whatever the late repeat says", async () => {
    const shopper = await newShopper(stage, service.url);
    const key = unique("key");
    await pay(shopper, shopper.charge, key);
    await expireRecord(key);
    const late = await pay(shopper, { ...shopper.charge, externalPaymentId: unique("external") }, key);
    expect(late.status).toBe(409);
    expect(late.json).toMatchObject({ code: "payment_conflict", field: "externalPaymentId" });
    expect(await countPayments(stage, shopper.charge.orderId)).toBe(1);
  });

  test("still finds it after the cleaner of a service has removed the record", async () => {
    const shopper = await newShopper(stage, service.url);
    const key = unique("key");
    const first = await pay(shopper, shopper.charge, key);
    await expireRecord(key);
    await stage.startReplica();
    const text = "select 1 from idemkit.idempotency_record where key = $1";
    const removed = async () => (await stage.pool.query({ text, values: [key] })).rows.length === 0;
    await until(removed, { what: "the cleaner removes an expired record" });
    const late = await pay(shopper, shopper.charge, key);
    expect(late.status).toBe(200);
    expect(late.text).toBe(first.text);
  });
});
