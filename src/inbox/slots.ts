import type { Limit } from "./persist.ts";

/** Runs at most `count` pieces of work at once; the others wait for their turn in the order of their calls. */
export function slots(count: number): Limit {
  let free = count;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (free === 0) await new Promise<void>((resolve) => void waiting.push(resolve));
    else free -= 1;
    try {
      return await work();
    } finally {
      const wake = waiting.shift();
      if (wake === undefined) free += 1;
      else wake();
    }
  };
}
