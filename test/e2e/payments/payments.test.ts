import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { anyUuid, ask, countPayments, fault, newCharge, newShopper, orderBody } from "./client.ts";
import type { Shopper } from "./client.ts";
import { openStage, unique } from "./stage.ts";
import type { Replica, Stage } from "./stage.ts";

let stage: Stage;
let service: Replica;
let shopper: Shopper;

beforeAll(async () => {
  stage = await openStage();
  service = await stage.startReplica();
  shopper = await newShopper(stage, service.url);
});
afterAll(() => stage.close());

describe("POST /payments", () => {
  const post = (body: unknown, key: string = unique("key"), token = shopper.token) =>
    ask(`${service.url}/payments`, { token, key, body });

  test("charges the order and answers a repeat with the same bytes", async () => {
    const { sub, token, charge } = await newShopper(stage, service.url);
    const key = unique("key");
    const first = await post(charge, key, token);
    expect(first.status).toBe(201);
    expect(first.json).toEqual({
      id: anyUuid,
      ...charge,
      customerId: sub,
      amount: "21.0000",
      status: "pending",
    });
    expect(first.headers.has("idempotent-replayed")).toBe(false);
    const again = await post(charge, key, token);
    expect(again.text).toBe(first.text);
    expect(again.status).toBe(201);
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect(again.headers.get("cache-control")).toContain("no-store");
    expect(await countPayments(stage, charge.orderId)).toBe(1);
  });

  test("refuses the key with another body, and a request without a key", async () => {
    const { token, charge } = await newShopper(stage, service.url);
    const key = unique("key");
    await post(charge, key, token);
    expect(fault(await post({ ...charge, amount: "20.00" }, key, token))).toBe("409 idempotency_key_reused");
    expect(fault(await ask(`${service.url}/payments`, { token, body: charge }))).toBe(
      "400 idempotency_key_missing",
    );
    expect(await countPayments(stage, charge.orderId)).toBe(1);
  });

  test.each<[string, object, string]>([
    ["an amount that differs from the total", { amount: "20.99" }, "422 amount_mismatch amount"],
    ["a currency that differs from the order's", { currency: "USD" }, "422 currency_mismatch currency"],
    ["an unknown order", { orderId: "00000000-0000-4000-8000-000000000000" }, "404 order_not_found orderId"],
    ["an order id that can't be one", { orderId: "1" }, "400 validation_failed orderId"],
    ["an amount that is a number", { amount: 21 }, "400 validation_failed amount"],
    ["an amount of five places", { amount: "21.00000" }, "400 validation_failed amount"],
    ["an amount of zero", { amount: "0" }, "400 validation_failed amount"],
    ["a negative amount", { amount: "-21.00" }, "400 validation_failed amount"],
    ["a currency that doesn't exist", { currency: "XYZ" }, "400 validation_failed currency"],
    ["an unknown member", { tip: "1.00" }, "400 validation_failed tip"],
    ["no provider", { provider: undefined }, "400 validation_failed provider"],
    ["an empty provider", { provider: "" }, "400 validation_failed provider"],
    ["an external id with NUL", { externalPaymentId: "a\u0000" }, "400 validation_failed externalPaymentId"],
    ["a long external id", { externalPaymentId: "x".repeat(256) }, "400 validation_failed externalPaymentId"],
  ])("refuses %s and writes nothing", async (_what, change, problem) => {
    const { token, charge } = await newShopper(stage, service.url);
    expect(fault(await post({ ...charge, ...change }, unique("key"), token))).toBe(problem);
    expect(await countPayments(stage, charge.orderId)).toBe(0);
  });

  test("refuses another customer's order", async () => {
    const other = await newShopper(stage, service.url);
    expect(fault(await post(other.charge))).toBe("403 order_foreign orderId");
  });

  test("stores a definitive refusal and answers a repeat with it", async () => {
    const { token, charge } = await newShopper(stage, service.url);
    const key = unique("key");
    const first = await post({ ...charge, amount: "20.99" }, key, token);
    const again = await post({ ...charge, amount: "20.99" }, key, token);
    expect(again.status).toBe(422);
    expect(again.text).toBe(first.text);
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect(again.headers.get("content-type")).toContain("application/problem+json");
  });

  test("finds an order whose id is written in capitals", async () => {
    const { token, charge } = await newShopper(stage, service.url);
    const answer = await post({ ...charge, orderId: charge.orderId.toUpperCase() }, unique("key"), token);
    expect(answer.json["orderId"]).toBe(charge.orderId);
  });

  test("lets one key be used for an order and for a payment", async () => {
    const { token } = shopper;
    const key = unique("key");
    const charge = await newCharge(service.url, token);
    expect((await ask(`${service.url}/orders`, { token, key, body: orderBody })).status).toBe(201);
    expect((await post(charge, key)).status).toBe(201);
  });
});
