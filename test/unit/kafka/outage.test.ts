import { describe, expect, test } from "vitest";

import { outage } from "../../../src/kafka/outage.ts";
import { stepped } from "./stepped.ts";

function observed(): { readonly told: string[]; readonly listener: Parameters<typeof outage>[0] } {
  const told: string[] = [];
  return {
    told,
    listener: {
      paused: () => void told.push("paused"),
      resumed: () => void told.push("resumed"),
      probe: () => void told.push("probe"),
    },
  };
}

describe("an outage", () => {
  test("lets nothing through, then one batch at a time, and everything once one got through", async () => {
    const { runtime, wake, sleeps } = stepped();
    const { told, listener } = observed();
    const away = outage(listener, runtime);
    expect(away.allowed(4)).toBe(4);
    away.begin(new Error("away"));
    expect(away.allowed(4)).toBe(0);
    await wake();
    expect(away.allowed(4)).toBe(1);
    away.begin(new Error("still away"));
    expect(away.allowed(4)).toBe(0);
    await wake();
    away.end();
    expect(away.allowed(4)).toBe(4);
    expect(told).toEqual(["paused", "probe", "probe", "resumed"]);
    expect(sleeps[1]).toBeGreaterThan(sleeps[0] ?? 0);
  });

  test("that several batches find together is one failure", () => {
    const { runtime, sleeps } = stepped();
    const { told, listener } = observed();
    const away = outage(listener, runtime);
    for (let batch = 0; batch < 4; batch += 1) away.begin(new Error("away"));
    expect(told).toEqual(["paused"]);
    expect(sleeps).toHaveLength(1);
  });

  test("that ended while it was waited out is not tried any more", async () => {
    const { runtime, wake } = stepped();
    const { told, listener } = observed();
    const away = outage(listener, runtime);
    away.begin(new Error("away"));
    away.end();
    await wake();
    expect(told).toEqual(["paused", "resumed"]);
    expect(away.active).toBe(false);
  });
});
