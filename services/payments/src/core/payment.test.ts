import { describe, expect, test } from "vitest";
import { payable, readable } from "./order-access.ts";
import { newOrder } from "./order.ts";
import { newPayment, sameCharge } from "./payment.ts";

const order = {
  ...newOrder({
    customerId: "alice",
    items: [{ sku: "teapot", quantity: 2, unitPrice: "10.50" }],
    currency: "EUR",
  }),
  id: "7a0e6c52-2c65-4ff0-8f0b-0d6a0c1d2e3f",
  createdAt: new Date(0),
};
const command = {
  orderId: order.id,
  provider: "acme-pay",
  externalPaymentId: "p-1",
  amount: "21.00",
  currency: "EUR",
};
const customer = (sub: string) => ({ sub, roles: new Set(["customer"]) });

describe("newPayment", () => {
  test("charges the order's total to its customer", () => {
    expect(newPayment(order, command)).toMatchObject({
      customerId: "alice",
      amount: 210_000n,
      status: "pending",
    });
  });

  test.each([
    ["amount", "amount_mismatch", { amount: "21.0001" }],
    ["currency", "currency_mismatch", { currency: "USD" }],
  ])("refuses another %s than the order's", (field, code, change) => {
    expect(() => newPayment(order, { ...command, ...change })).toThrow(
      expect.objectContaining({ kind: "unprocessable", code, faults: [expect.objectContaining({ field })] }),
    );
  });
});

describe("sameCharge", () => {
  const wanted = newPayment(order, command);
  const found = { ...wanted, id: "f3c8a9f4-6b1d-4a52-9a61-2d0e3f4a5b6c" };

  test("is the payment found where every member of the charge is equal", () => {
    expect(sameCharge(found, wanted)).toBe(found);
  });

  test.each([
    ["orderId", { orderId: "another" }],
    ["provider", { provider: "other-pay" }],
    ["externalPaymentId", { externalPaymentId: "p-2" }],
    ["amount", { amount: wanted.amount + 1n }],
    ["currency", { currency: "USD" }],
  ])("is a conflict where the payment found has another %s, without showing it", (field, change) => {
    const other = { ...found, ...change } as typeof found;
    expect(() => sameCharge(other, wanted)).toThrow(
      expect.objectContaining({
        kind: "conflict",
        code: "payment_conflict",
        faults: [{ field, message: "differs from the payment already made" }],
      }),
    );
  });
});

describe("access to an order", () => {
  test("lets its owner read and pay", () => {
    expect(readable(customer("alice"), "id", order)).toBe(order);
    expect(payable(customer("alice"), "orderId", order)).toBe(order);
  });

  test("lets an admin read but not pay", () => {
    const admin = { sub: "root", roles: new Set(["admin"]) };
    expect(readable(admin, "id", order)).toBe(order);
    expect(() => payable(admin, "orderId", order)).toThrow(
      expect.objectContaining({ code: "order_foreign" }),
    );
  });

  test("keeps other customers out, and tells an unknown order apart", () => {
    expect(() => readable(customer("bob"), "id", order)).toThrow(
      expect.objectContaining({ kind: "forbidden", code: "order_foreign" }),
    );
    expect(() => payable(customer("bob"), "orderId", undefined)).toThrow(
      expect.objectContaining({ kind: "not-found", code: "order_not_found" }),
    );
  });
});
