import { expect, test } from "vitest";

import { registerOperation, settingsOf } from "../../../src/core/operation.ts";

test("what is not said has the documented default", () => {
  expect(settingsOf({ operation: "charge" })).toEqual({
    retentionMs: 72 * 3_600_000,
    handlerTimeoutMs: 30_000,
    idleTimeoutMs: 10_000,
    lockTimeoutMs: 5000,
    isolation: undefined,
    waitMs: 0,
    maxWaiting: 100,
  });
});

test.each([24, 72, 47.5])("a retention of %d hours is taken", (retentionHours) => {
  expect(settingsOf({ operation: "charge", retentionHours }).retentionMs).toBe(retentionHours * 3_600_000);
});

test.each([23.999, 72.001])("a retention of %d hours must be meant", (retentionHours) => {
  const at = { details: { at: "charge.retentionHours" }, code: "retention_out_of_range" };
  expect(() => settingsOf({ operation: "charge", retentionHours })).toThrow(
    expect.objectContaining(at) as Error,
  );
  expect(settingsOf({ operation: "charge", retentionHours, allowUnsafeRetention: true }).retentionMs).toBe(
    retentionHours * 3_600_000,
  );
});

test.each(["charge", "create-order", "orders:create.v2", "a_b", "x".repeat(100)])(
  "%s names an operation",
  (operation) => {
    expect(() => settingsOf({ operation })).not.toThrow();
  },
);

test.each(["", "Charge", "a b", "-a", "a--b", "x".repeat(101), "ä"])(
  "%j does not name an operation",
  (operation) => {
    expect(() => settingsOf({ operation })).toThrow(
      expect.objectContaining({ code: "option_invalid" }) as Error,
    );
  },
);

test("two operations of one name on one database are refused, on two they are not", () => {
  const [one, two] = [{}, {}];
  registerOperation(one, "charge");
  registerOperation(two, "charge");
  registerOperation(one, "refund");
  expect(() => registerOperation(one, "charge")).toThrow(
    expect.objectContaining({ code: "operation_duplicate" }) as Error,
  );
});
