import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { anyTime, anyUuid, ask, fault, newShopper, orderBody } from "./client.ts";
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

describe("POST /orders", () => {
  const post = (body: unknown, key: string | undefined = unique("key")) =>
    ask(`${service.url}/orders`, { token: shopper.token, body, ...(key === undefined ? {} : { key }) });

  test("creates an order of the token's customer, priced exactly", async () => {
    const answer = await post(orderBody);
    expect(answer.status).toBe(201);
    expect(answer.json).toEqual({
      id: anyUuid,
      customerId: shopper.sub,
      status: "pending",
      items: [{ sku: "teapot", quantity: 2, unitPrice: "10.5000" }],
      total: "21.0000",
      currency: "EUR",
      createdAt: anyTime,
    });
    expect(answer.headers.get("location")).toBe(`/orders/${String(answer.json["id"])}`);
    expect(answer.headers.has("idempotent-replayed")).toBe(false);
  });

  test("answers a repeat with the stored order and says so", async () => {
    const key = unique("key");
    const first = await post(orderBody, key);
    const again = await post(orderBody, key);
    expect(again.status).toBe(201);
    expect(again.text).toBe(first.text);
    expect(again.headers.get("location")).toBe(first.headers.get("location"));
    expect(again.headers.get("idempotent-replayed")).toBe("true");
  });

  test("takes a key written as a quoted string for the same key", async () => {
    const key = unique("key");
    const first = await post(orderBody, key);
    expect((await post(orderBody, `"${key}"`)).text).toBe(first.text);
  });

  test("refuses the key with another body", async () => {
    const key = unique("key");
    await post(orderBody, key);
    expect(fault(await post({ ...orderBody, currency: "USD" }, key))).toBe("409 idempotency_key_reused");
  });

  test("refuses a request without a key, and one with a malformed key", async () => {
    const { token } = shopper;
    expect(fault(await ask(`${service.url}/orders`, { token, body: orderBody }))).toBe(
      "400 idempotency_key_missing",
    );
    expect(fault(await post(orderBody, "k".repeat(256)))).toBe("400 idempotency_key_malformed");
  });

  test("lets two customers use one key", async () => {
    const key = unique("key");
    const other = await stage.token(unique("other"));
    const first = await post(orderBody, key);
    const second = await ask(`${service.url}/orders`, { token: other, key, body: orderBody });
    expect(second.status).toBe(201);
    expect(second.json["id"]).not.toBe(first.json["id"]);
  });

  const [item] = orderBody.items;
  const most = { sku: "yacht", quantity: 1, unitPrice: "9".repeat(15) };
  test.each<[string, unknown, string]>([
    ["no body", "", "body"],
    ["a body that isn't JSON", "{", "body"],
    ["an array", [], "body"],
    ["null", "null", "body"],
    ["no items", { currency: "EUR" }, "items"],
    ["an empty list of items", { ...orderBody, items: [] }, "items"],
    ["too many items", { ...orderBody, items: Array.from({ length: 201 }, () => item) }, "items"],
    ["an unknown member", { ...orderBody, discount: "1" }, "discount"],
    ["an unknown member of an item", { ...orderBody, items: [{ ...item, color: "red" }] }, "items[0].color"],
    ["__proto__", '{"__proto__":{"a":1},"items":[],"currency":"EUR"}', "body"],
    ["a customer of its own choice", { ...orderBody, customerId: "bob" }, "customerId"],
    ["an empty sku", { ...orderBody, items: [{ ...item, sku: "" }] }, "items[0].sku"],
    ["a blank sku", { ...orderBody, items: [{ ...item, sku: "  " }] }, "items[0].sku"],
    ["a sku with NUL", { ...orderBody, items: [{ ...item, sku: "a\u0000b" }] }, "items[0].sku"],
    [
      "a sku with a lone surrogate",
      `{"items":[{"sku":"\\ud800","quantity":1,"unitPrice":"1"}],"currency":"EUR"}`,
      "items[0].sku",
    ],
    ["a long sku", { ...orderBody, items: [{ ...item, sku: "s".repeat(65) }] }, "items[0].sku"],
    ["quantity zero", { ...orderBody, items: [{ ...item, quantity: 0 }] }, "items[0].quantity"],
    ["a negative quantity", { ...orderBody, items: [{ ...item, quantity: -1 }] }, "items[0].quantity"],
    ["a fraction of a quantity", { ...orderBody, items: [{ ...item, quantity: 1.5 }] }, "items[0].quantity"],
    ["a quantity in quotes", { ...orderBody, items: [{ ...item, quantity: "2" }] }, "items[0].quantity"],
    ["a huge quantity", { ...orderBody, items: [{ ...item, quantity: 1e15 }] }, "items[0].quantity"],
    [
      "an infinite quantity",
      '{"items":[{"sku":"a","quantity":1e999,"unitPrice":"1"}],"currency":"EUR"}',
      "items[0].quantity",
    ],
    [
      "a price that is a number",
      { ...orderBody, items: [{ ...item, unitPrice: 10.5 }] },
      "items[0].unitPrice",
    ],
    [
      "a price of five places",
      { ...orderBody, items: [{ ...item, unitPrice: "1.00001" }] },
      "items[0].unitPrice",
    ],
    ["a price of zero", { ...orderBody, items: [{ ...item, unitPrice: "0.0000" }] }, "items[0].unitPrice"],
    ["a negative price", { ...orderBody, items: [{ ...item, unitPrice: "-1" }] }, "items[0].unitPrice"],
    ["a price in exponents", { ...orderBody, items: [{ ...item, unitPrice: "1e3" }] }, "items[0].unitPrice"],
    [
      "a price too large",
      { ...orderBody, items: [{ ...item, unitPrice: "1".repeat(16) }] },
      "items[0].unitPrice",
    ],
    ["a line too large", { ...orderBody, items: [{ ...item, unitPrice: "9".repeat(15) }] }, "items[0]"],
    ["a total too large", { ...orderBody, items: [most, most] }, "items"],
    ["a currency that doesn't exist", { ...orderBody, currency: "XYZ" }, "currency"],
    ["a currency in small letters", { ...orderBody, currency: "eur" }, "currency"],
    ["a currency that is null", { ...orderBody, currency: null }, "currency"],
  ])("refuses %s and names the field", async (_what, body, field) => {
    expect(fault(await post(body))).toBe(`400 validation_failed ${field}`);
  });

  test("refuses a body that isn't sent as JSON, and one that is too large", async () => {
    const text = {
      token: shopper.token,
      key: unique("key"),
      body: "hello",
      headers: { "content-type": "text/plain" },
    };
    expect(fault(await ask(`${service.url}/orders`, text))).toBe("415 request_refused Content-Type");
    expect(fault(await post(`"${"x".repeat(300_000)}"`))).toBe("413 request_refused body");
  });

  test("leaves a key free after a refused request", async () => {
    const key = unique("key");
    expect((await post({ ...orderBody, currency: "XYZ" }, key)).status).toBe(400);
    expect((await post(orderBody, key)).status).toBe(201);
  });
});

describe("GET /orders/{id}", () => {
  const get = (id: string, token = shopper.token) => ask(`${service.url}/orders/${id}`, { token });

  test("gives the owner the order as it was answered", async () => {
    const created = await ask(`${service.url}/orders`, {
      token: shopper.token,
      key: unique("k"),
      body: orderBody,
    });
    const answer = await get(String(created.json["id"]));
    expect(answer.status).toBe(200);
    expect(answer.json).toEqual(created.json);
  });

  test("gives it to an admin and keeps other customers out", async () => {
    const { orderId } = shopper.charge;
    expect((await get(orderId, await stage.token("root", ["admin"]))).status).toBe(200);
    expect(fault(await get(orderId, await stage.token("bob")))).toBe("403 order_foreign id");
  });

  test("tells an unknown order from an id that can't be one", async () => {
    expect(fault(await get("00000000-0000-4000-8000-000000000000"))).toBe("404 order_not_found id");
    expect(fault(await get("1"))).toBe("400 validation_failed id");
    expect(fault(await get("%00"))).toBe("400 validation_failed id");
  });
});
