import { expect, test } from "vitest";

import { IdemkitError, errorCatalogue, isIdemkitError } from "../../src/errors.ts";

test("every error of the catalogue says what happened and what to do", () => {
  for (const [code, { message }] of Object.entries(errorCatalogue)) {
    expect(code).toMatch(/^[a-z]+(?:_[a-z]+)+$/);
    expect(message.length).toBeGreaterThan(30);
  }
});

test("an error carries its code, its detail and its cause", () => {
  const cause = new Error("refused");
  const error = new IdemkitError("idempotency_unavailable", {
    detail: "at start",
    details: { at: "x" },
    cause,
  });
  expect(error).toMatchObject({
    code: "idempotency_unavailable",
    retryable: true,
    details: { at: "x" },
    cause,
  });
  expect(error.message).toBe(`${errorCatalogue.idempotency_unavailable.message} (at start)`);
});

test("an error is known by its code, also across two copies of the package", () => {
  const foreign = Object.assign(new Error("x"), { name: "IdemkitError", code: "schema_missing" });
  expect([isIdemkitError(foreign), isIdemkitError(foreign, "schema_missing")]).toEqual([true, true]);
  expect(isIdemkitError(foreign, "schema_newer")).toBe(false);
  const strangers = [
    Object.assign(new Error("x"), { code: "schema_missing" }),
    { name: "IdemkitError" },
    null,
  ];
  expect(strangers.map((each) => isIdemkitError(each))).toEqual([false, false, false]);
});
