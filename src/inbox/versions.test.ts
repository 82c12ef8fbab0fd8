import fc from "fast-check";
import { expect, test } from "vitest";

import { judge } from "./versions.ts";

const version = fc.integer({ min: 0, max: 20 });
const current = fc.option(version, { nil: null });

test("what is not newer is stale, whatever the policy", () => {
  fc.assert(
    fc.property(version, version, fc.constantFrom("hold", "accept"), (given, applied, onGap) => {
      const verdict = judge(given, { version: applied, held: false }, { onGap, firstVersion: 1 });
      expect(verdict === "stale").toBe(given <= applied);
    }),
  );
});

test("accepting applies whatever is newer; holding applies the next one only", () => {
  fc.assert(
    fc.property(version, current, (given, applied) => {
      const row = { version: applied, held: false };
      if (applied !== null && given <= applied) return;
      expect(judge(given, row, { onGap: "accept", firstVersion: 1 })).toBe("apply");
      const next = applied === null ? 1 : applied + 1;
      const expected = ["stale", "apply", "gap"][Math.sign(given - next) + 1];
      expect(judge(given, row, { onGap: "hold", firstVersion: 1 })).toBe(expected);
    }),
  );
});

test("an aggregate that begins with any version accepts the first it sees, and holds from there", () => {
  const policy = { onGap: "hold", firstVersion: "any" } as const;
  expect(judge(17, { version: null, held: false }, policy)).toBe("apply");
  expect(judge(19, { version: 17, held: false }, policy)).toBe("gap");
});
