import { describe, expect, test } from "vitest";

import { IdemkitError } from "../../../src/errors.ts";
import { classify, sqlstateOf } from "../../../src/postgres/sqlstate.ts";

const coded = (code: string, cause?: unknown): Error =>
  Object.assign(new Error("untranslated", { cause }), { code });

describe("classify", () => {
  test.each([
    ["retry", "40001"],
    ["retry", "40P01"],
    ["retry", "P2034"],
    ["unavailable", "57P01"],
    ["unavailable", "57014"],
    ["unavailable", "55P03"],
    ["unavailable", "25P03"],
    ["unavailable", "25006"],
    ["unavailable", "53100"],
    ["unavailable", "53300"],
    ["unavailable", "08006"],
    ["unavailable", "ECONNREFUSED"],
    ["unavailable", "EPIPE"],
    ["conflict", "23505"],
    ["conflict", "23503"],
    ["fatal", "42P01"],
    ["fatal", "22012"],
    ["fatal", "25P02"],
    ["fatal", "P0001"],
    ["fatal", "ERR_INVALID_ARG_TYPE"],
  ])("says %s for %s, also where a mapper has wrapped it", (kind, code) => {
    expect(classify(coded(code))).toBe(kind);
    expect(classify(new Error("DrizzleQueryError", { cause: coded(code) }))).toBe(kind);
    expect(classify(coded("P2010", coded(code)))).toBe(kind); // Prisma's "raw query failed"
  });

  test("says unavailable for idemkit's own, and fatal for what is no error of a database", () => {
    expect(classify(new IdemkitError("idempotency_unavailable"))).toBe("unavailable");
    for (const other of [
      new IdemkitError("handler_timed_out"),
      new Error("e"),
      undefined,
      null,
      "40001",
      40_001,
    ]) {
      expect(classify(other)).toBe("fatal");
    }
  });

  test("has an SQLSTATE only where PostgreSQL has that class", () => {
    expect(
      ["40001", "P0001", "XX000", "HV000", "0A000"].map((code) => sqlstateOf(coded(code))),
    ).not.toContain(undefined);
    expect(["EPIPE", "EPERM", "P2010", "40001 "].map((code) => sqlstateOf(coded(code)))).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });

  test("ends with causes that go round in a circle", () => {
    const loop = new Error("loop");
    loop.cause = loop;
    expect([classify(loop), sqlstateOf(loop)]).toEqual(["fatal", undefined]);
  });
});
