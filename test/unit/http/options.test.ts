import type { Database } from "idemkit";
import { idempotency as express } from "idemkit/express";
import { idempotency as fastify } from "idemkit/fastify";
import { idempotency as fetchStyle } from "idemkit/fetch";
import { idempotency as hono } from "idemkit/hono";
import { idempotency as node } from "idemkit/node";
import { describe, expect, test } from "vitest";

/** Never reached: options are checked before any I/O. */
function unreachable(): Database<object> {
  const never = async (): Promise<never> => {
    throw new Error("the database was asked");
  };
  const records = { find: never, claim: never, refuse: never };
  return { records, unrecorded: records, classify: () => "fatal" };
}

const bindings = { express, fastify, fetch: fetchStyle, hono, node };
type Loose = (options: object) => (options: object, handler?: unknown) => unknown;

describe.each(Object.entries(bindings))("idempotency of %s", (_name, strict) => {
  const idempotency = strict as unknown as Loose;
  const bound = (options: object = {}): ReturnType<Loose> =>
    idempotency({ database: unreachable(), scope: "shared", ...options });
  const handler = (): undefined => undefined;

  test.each([
    [{ scopes: "shared" }, "did you mean scope?"],
    [{ scope: "everybody" }, 'or "shared"'],
    [{ scope: undefined }, 'or "shared"'],
    [{ database: {} }, "database must be one"],
    [{ mismatchStatus: 418 }, "409 or 422"],
    [{ onOutcome: "log" }, "onOutcome must be a function"],
  ])("refuses %j", (options, message) => {
    expect(() => bound(options)).toThrow(message);
  });

  test.each([
    [{}, "operation must be"],
    [{ operation: "Charge" }, "lower-case name"],
    [{ operation: "charge", retentionHour: 48 }, "did you mean retentionHours?"],
    [{ operation: "charge", retentionHours: 23 }, "between 24 and 72"],
    [{ operation: "charge", key: "maybe" }, '"required" or "optional"'],
    [{ operation: "charge", command: "body" }, "command must be a function"],
    [{ operation: "charge", maxResponseBytes: -1 }, "maxResponseBytes must be a whole number"],
    [{ operation: "charge", storeHeaders: ["Set-Cookie"] }, "set-cookie"],
    [{ operation: "charge", storeHeaders: ["Access-Control-Allow-Origin"] }, "never stored"],
    [{ operation: "charge", storeHeaders: ["not a name"] }, "no header name"],
  ])("refuses a route with %j", (options, message) => {
    expect(() => bound()(options, handler)).toThrow(message);
  });

  test("refuses two operations of one name on one database", () => {
    const database = unreachable();
    bound({ database })({ operation: "charge" }, handler);
    expect(() => bound({ database })({ operation: "charge" }, handler)).toThrow(
      expect.objectContaining({ code: "operation_duplicate" }) as Error,
    );
    expect(() => bound()({ operation: "charge" }, handler)).not.toThrow();
  });
});
