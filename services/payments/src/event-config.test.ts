import { describe, expect, test } from "vitest";
import { readEventConfig } from "./event-config.ts";

const least = { DATABASE_URL: "postgres://127.0.0.1/payments" };

describe("readEventConfig", () => {
  test("needs the database alone, and no broker", () => {
    const config = readEventConfig({ ...least, KAFKA_BROKERS: "" });
    expect(config).toMatchObject({ poolSize: 10, relayLeaseMs: 30_000, kafkaBrokers: undefined });
  });

  test("takes several brokers", () => {
    const { kafkaBrokers } = readEventConfig({ ...least, KAFKA_BROKERS: "one:9092, two:9092" });
    expect(kafkaBrokers).toEqual(["one:9092", "two:9092"]);
  });

  test.each([
    ["DATABASE_URL", ""],
    ["POOL_SIZE", "5"],
    ["RELAY_LEASE_MS", "soon"],
  ])("names %s where it is %j", (name, value) => {
    expect(() => readEventConfig({ ...least, [name]: value })).toThrow(name);
  });
});
