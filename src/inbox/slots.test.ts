import { expect, test } from "vitest";

import { slots } from "./slots.ts";

/** Lets everything go on that waits for nothing else. */
async function turn(): Promise<void> {
  for (let i = 0; i < 20; i += 1) await Promise.resolve();
}

test("at most so many pieces of work run at once, the others in their turn, also when one fails", async () => {
  const limit = slots(2);
  const started: number[] = [];
  const ends: (() => void)[] = [];
  const work = [0, 1, 2, 3].map((n) =>
    limit(async () => {
      started.push(n);
      await new Promise<void>((resolve) => ends.push(resolve));
      if (n === 0) throw new Error("failed");
      return n;
    }),
  );
  const ended = Promise.allSettled(work);
  await Promise.resolve();
  expect(started).toEqual([0, 1]);
  ends[0]?.();
  await expect(work[0]).rejects.toThrow("failed");
  await turn();
  expect(started).toEqual([0, 1, 2]);
  ends[1]?.();
  ends[2]?.();
  await Promise.all(work.slice(1, 3));
  await turn();
  expect(started).toEqual([0, 1, 2, 3]);
  ends[3]?.();
  expect((await ended).map(({ status }) => status)).toEqual([
    "rejected",
    "fulfilled",
    "fulfilled",
    "fulfilled",
  ]);
});
