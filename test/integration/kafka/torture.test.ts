import { describe, expect, test } from "vitest";

import { whyNoBroker } from "../../../scripts/kafka/provide.mjs";
import { spawnProcess } from "../../support/index.ts";

describe.skipIf(whyNoBroker() !== undefined)("the torture of the messaging path", () => {
  test("in short: no event lost, doubled or turned round, and the ledger balances", async () => {
    const args = ["--seconds", "10", "--seed", "7", "--events", "2500"];
    await using torture = spawnProcess("test/torture/messaging/main.mjs", { args });
    const { code } = await torture.exited;
    const result = JSON.parse(torture.lines.at(-1) ?? "{}") as Record<string, number>;
    expect(result).toMatchObject({
      seed: 7,
      lost: 0,
      duplicated: 0,
      inverted: 0,
      invertedInLog: 0,
      balanceCents: 0,
      wrongAccounts: 0,
      deadLetters: 0,
    });
    expect(result["events"]).toBeGreaterThanOrEqual(2500);
    // A torture that hurts nobody proves nothing.
    expect(result["faults"]).toBeGreaterThanOrEqual(5);
    expect(result["resent"]).toBeGreaterThan(250);
    expect(result["suppressed"]).toBeGreaterThan(0);
    expect(code).toBe(0);
  }, 240_000);
});
