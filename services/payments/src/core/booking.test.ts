import { describe, expect, test } from "vitest";
import { bookings } from "./booking.ts";

const about = { orderId: "order-1", customerId: "alice", currency: "EUR" };

describe("bookings", () => {
  test("a customer who orders, pays and is given everything back owes nothing, and neither do the others", () => {
    const entries = [
      bookings["order.created"]({ ...about, total: "21.00" }),
      bookings["payment.charged"]({ ...about, provider: "acme", paymentId: "p", amount: "21.00" }),
      bookings["payment.refunded"]({ ...about, provider: "acme", paymentId: "p", amount: "21.00" }),
    ];
    expect(entries.map(({ debit, credit, amount }) => [debit, credit, amount])).toEqual([
      ["customer:alice", "sales", "21.0000"],
      ["provider:acme", "customer:alice", "21.0000"],
      ["sales", "provider:acme", "21.0000"],
    ]);
  });

  test.each([
    ["no object", "order.created", null, "orderId"],
    ["no amount", "payment.charged", { ...about, provider: "acme" }, "amount"],
    ["an amount that is a number", "payment.charged", { ...about, provider: "acme", amount: 21 }, "amount"],
    ["a negative amount", "payment.refunded", { ...about, provider: "acme", amount: "-1" }, "amount"],
  ] as const)("refuses data with %s", (_what, type, data, field) => {
    expect(() => bookings[type](data)).toThrow(`${field} must be`);
  });
});
