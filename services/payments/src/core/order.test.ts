import { describe, expect, test } from "vitest";
import { formatMoney } from "./money.ts";
import { newOrder } from "./order.ts";

const command = {
  customerId: "alice",
  items: [
    { sku: "teapot", quantity: 2, unitPrice: "10.50" },
    { sku: "cup", quantity: 3, unitPrice: "0.0001" },
  ],
  currency: "EUR",
};

describe("newOrder", () => {
  test("totals the items exactly", () => {
    expect(formatMoney(newOrder(command).total)).toBe("21.0003");
  });

  test("names the item whose price can't be one", () => {
    const items = [command.items[0], { sku: "cup", quantity: 1, unitPrice: "0" }].filter(
      (item) => item !== undefined,
    );
    expect(() => newOrder({ ...command, items })).toThrow(/^items\[1\]\.unitPrice must be more than zero/u);
  });

  test.each(["XYZ", "eur", "EURO", ""])(
    "refuses the currency %j, which ISO 4217 doesn't know",
    (currency) => {
      expect(() => newOrder({ ...command, currency })).toThrow(/^currency /u);
    },
  );
});
