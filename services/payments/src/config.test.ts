import { describe, expect, test } from "vitest";
import { readConfig } from "./config.ts";

const least = {
  DATABASE_URL: "postgres://127.0.0.1/payments",
  ISSUER: "https://issuer.example",
  JWKS_URL: "https://issuer.example/jwks.json",
};

describe("readConfig", () => {
  test("has defaults for everything but the database and the issuer", () => {
    expect(readConfig(least)).toMatchObject({
      port: 3000,
      host: "127.0.0.1",
      audience: "payments",
      poolSize: 10,
    });
  });

  test.each(["DATABASE_URL", "ISSUER", "JWKS_URL"])("names %s where it is missing", (name) => {
    expect(() => readConfig({ ...least, [name]: "" })).toThrow(`${name} must be set`);
  });

  test.each([
    ["PORT", "http"],
    ["PORT", "65536"],
    ["POOL_SIZE", "0"],
    ["POOL_SIZE", "1e3"],
    ["JWKS_URL", "not a url"],
    ["LOG_LEVEL", "loud"],
    ["OUTBOX_AGE_LIMIT_MS", "0"],
  ])("names %s where it is %j", (name, value) => {
    expect(() => readConfig({ ...least, [name]: value })).toThrow(name);
  });
});
