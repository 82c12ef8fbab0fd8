import { expect, test } from "vitest";

import { spawnProcess } from "../support/index.ts";

/** One seed for each kind of provider would take too long here; `npm run torture:effects` takes any. */
const seeds = [1, 3];

test.each(seeds)(
  "a short torture with seed %i loses nothing, does nothing twice and leaves nothing stuck",
  async (seed) => {
    const args = ["--seconds", "3", "--customers", "8", "--seed", String(seed)];
    await using torture = spawnProcess("test/torture/effects/main.mjs", { args });
    const end = await torture.exited;
    const result = JSON.parse(torture.lines.findLast((line) => line.startsWith("{")) ?? "{}") as Record<
      string,
      unknown
    >;
    expect(result).toMatchObject({ seed, lost: 0, duplicated: 0, stuck: 0, disagreements: 0 });
    expect(result["operations"]).toBeGreaterThan(0);
    expect(end).toEqual({ code: 0, signal: null });
  },
);
