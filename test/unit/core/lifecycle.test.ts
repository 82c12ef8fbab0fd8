import { expect, test } from "vitest";

import { next as stateAfter, transitions } from "../../../src/core/lifecycle.ts";

const states = ["absent", "running", "kept", "refused"] as const;

test("no event of a state leads two ways", () => {
  const ways = transitions.map(({ from, event }) => `${from} ${event}`);
  expect(new Set(ways).size).toBe(ways.length);
});

test("every state is reached from absent and leads back to it", () => {
  const reach = (start: string, end: string, seen = new Set<string>()): boolean =>
    transitions.some(({ from, to }) => {
      if (from !== start || seen.has(to)) return false;
      return to === end || reach(to, end, seen.add(to));
    });
  for (const state of states.filter((each) => each !== "absent")) {
    expect([reach("absent", state), reach(state, "absent")]).toEqual([true, true]);
  }
});

test("a stored answer stays what it is until it expires", () => {
  for (const state of ["kept", "refused"] as const) {
    const ways = transitions.filter(({ from, to }) => from === state && to !== state);
    expect(ways.map(({ event }) => event)).toEqual(["expire"]);
    expect(stateAfter(state, "claim")).toBeUndefined();
  }
});
