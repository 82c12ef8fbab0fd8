import { readFileSync } from "node:fs";

import { describe, expect, test } from "vitest";

import { murmur2, murmur2Partition } from "../../../src/kafka/murmur2.ts";

/**
 * Made once with kafka-clients 4.3.1: for each key's bytes `Utils.murmur2(bytes)`, and `Utils.toPositive` of it modulo 12
 * and 1,000, as `BuiltInPartitioner.partitionForKey` takes it.
 */
interface Answer {
  readonly keyHex: string;
  readonly murmur2: number;
  readonly of12: number;
  readonly of1000: number;
}

const table = JSON.parse(readFileSync(new URL("murmur2-table.json", import.meta.url), "utf8")) as Answer[];

describe("murmur2", () => {
  test("answers as Java does for every key of the table", () => {
    expect(table.length).toBeGreaterThan(60);
    const ours = table.map(({ keyHex }) => {
      const key = Buffer.from(keyHex, "hex");
      return {
        keyHex,
        murmur2: murmur2(key),
        of12: murmur2Partition(key, 12),
        of1000: murmur2Partition(key, 1000),
      };
    });
    expect(ours).toEqual(table);
  });

  test("takes text as UTF-8", () => {
    for (const { keyHex, of12 } of table) {
      expect(murmur2Partition(Buffer.from(keyHex, "hex").toString("utf8"), 12)).toBe(of12);
    }
  });

  test("reads a key that lies inside a larger buffer", () => {
    const inside = Buffer.from("xxorder-42yy").subarray(2, 10);
    expect(murmur2(inside)).toBe(murmur2(Buffer.from("order-42")));
  });
});
