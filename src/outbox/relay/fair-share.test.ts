import fc from "fast-check";
import { expect, test } from "vitest";

import { fairShare } from "./fair-share.ts";

test("equal relays get equal shares, rounded up", () => {
  expect(fairShare(16, 16, [])).toBe(16);
  expect(fairShare(16, 16, [16])).toBe(8);
  expect(fairShare(16, 16, [16, 16])).toBe(6);
});

test("what a small relay leaves goes to the others", () => {
  expect(fairShare(16, 2, [16, 16])).toBe(2);
  expect(fairShare(16, 16, [2, 16])).toBe(7);
  expect(fairShare(16, 16, [1, 1, 1])).toBe(13);
});

test("together the relays always cover what they can, and none gets more than it can hold", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 16 }), { minLength: 1, maxLength: 20 }), (capacities) => {
      const shares = capacities.map((capacity, i) =>
        fairShare(
          16,
          capacity,
          capacities.filter((_, j) => j !== i),
        ),
      );
      const covered = shares.reduce((sum, share) => sum + share, 0);
      const possible = Math.min(
        16,
        capacities.reduce((sum, capacity) => sum + capacity, 0),
      );
      expect(covered).toBeGreaterThanOrEqual(possible);
      for (const [i, share] of shares.entries()) expect(share).toBeLessThanOrEqual(capacities[i] ?? 0);
    }),
  );
});
