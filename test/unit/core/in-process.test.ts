import { expect, test } from "vitest";

import { inProcessOf } from "../../../src/core/in-process.ts";
import type { Database } from "../../../src/core/ports.ts";

/** The registry looks at nothing of it. */
const database = (): Database<never> => ({}) as Database<never>;

test("each database object has a registry of its own, and always the same one", () => {
  const [one, two] = [database(), database()];
  expect(inProcessOf(one)).toBe(inProcessOf(one));
  expect(inProcessOf(one)).not.toBe(inProcessOf(two));
});

test("of the identities seen finished the latest are remembered, and never many more", () => {
  const { finished } = inProcessOf(database());
  for (let i = 0; i < 50_000; i += 1) finished.add(`key-${i}`);
  const kept = Array.from({ length: 50_000 }, (_, i) => i).filter((i) => finished.has(`key-${i}`));
  expect(kept.length).toBeLessThanOrEqual(8192);
  expect(kept.slice(-4096)).toEqual(Array.from({ length: 4096 }, (_, i) => 50_000 - 4096 + i));
});
