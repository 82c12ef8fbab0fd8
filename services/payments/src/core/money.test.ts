import { describe, expect, test } from "vitest";
import { formatMoney, parseMoney, parsePositiveMoney, sum, times } from "./money.ts";

describe("money", () => {
  test.each([
    ["21", "21.0000"],
    ["21.5", "21.5000"],
    ["0.0001", "0.0001"],
    ["10.50", "10.5000"],
    ["999999999999999.9999", "999999999999999.9999"],
  ])("reads %s exactly and writes it with four places", (text, written) => {
    expect(formatMoney(parseMoney("amount", text))).toBe(written);
  });

  test.each([
    "",
    " 1",
    "1 ",
    "1.",
    ".5",
    "01",
    "00.5",
    "-1",
    "+1",
    "1e3",
    "1,5",
    "0x1",
    "1.00000",
    "NaN",
    "١",
    "1\n",
  ])("refuses %j, naming the field", (text) => {
    expect(() => parseMoney("amount", text)).toThrow(
      expect.objectContaining({ kind: "validation", faults: [expect.objectContaining({ field: "amount" })] }),
    );
  });

  test("refuses more digits than numeric(19,4) holds", () => {
    expect(() => parseMoney("amount", "1000000000000000")).toThrow(/amount/u);
  });

  test("refuses zero where an amount must be positive", () => {
    expect(() => parsePositiveMoney("amount", "0.0000")).toThrow(/more than zero/u);
  });

  test("adds and multiplies where a float would round", () => {
    const tenth = parseMoney("a", "0.1");
    expect(formatMoney(sum("a", [tenth, tenth, tenth]))).toBe("0.3000");
    expect(formatMoney(times("a", parseMoney("a", "90071992547409.9301"), 3))).toBe("270215977642229.7903");
  });

  test("refuses a product or a sum that numeric(19,4) can't hold, naming the field", () => {
    const most = parseMoney("a", "999999999999999.9999");
    expect(() => times("items[0]", most, 2)).toThrow(/^items\[0\] adds up/u);
    expect(() => sum("items", [most, parseMoney("a", "0.0001")])).toThrow(/^items adds up/u);
  });
});
