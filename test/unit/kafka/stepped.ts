import type { Runtime } from "../../../src/internal/runtime.ts";

/** A clock that the test moves: every sleep ends when it says so. */
export function stepped(): { readonly runtime: Runtime; readonly sleeps: number[]; wake(): Promise<void> } {
  const sleeps: number[] = [];
  let sleepers: (() => void)[] = [];
  return {
    sleeps,
    runtime: {
      random: () => 1,
      newId: () => "",
      monotonicMs: () => 0,
      sleep: (ms) => {
        sleeps.push(ms);
        return new Promise((resolve) => {
          sleepers.push(resolve);
        });
      },
    },
    wake: async () => {
      for (const resolve of sleepers) resolve();
      sleepers = [];
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    },
  };
}
