import { describe, expect, test } from "vitest";
import { sharedReads } from "./shared-reads.ts";

/** A store whose reads are answered by hand, in the order in which they began. */
const slowStore = () => {
  let value = 0;
  const begun: (() => void)[] = [];
  const read = (_id: string): Promise<number> => {
    const seen = value;
    return new Promise((resolve) => begun.push(() => resolve(seen)));
  };
  const answerNext = async (): Promise<void> => {
    begun.shift()?.();
    // Lets whoever waited for that answer go on.
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { read, answerNext, reading: () => begun.length, write: (next: number) => (value = next) };
};

describe("sharedReads", () => {
  test("makes two reads of a hundred calls at once", async () => {
    const store = slowStore();
    const get = sharedReads(store.read);
    const all = Promise.all(Array.from({ length: 100 }, () => get("order")));
    expect(store.reading()).toBe(1);
    await store.answerNext();
    expect(store.reading()).toBe(1);
    await store.answerNext();
    expect(await all).toEqual(Array.from({ length: 100 }, () => 0));
    expect(store.reading()).toBe(0);
  });

  test("never gives a call what was read before it asked", async () => {
    const store = slowStore();
    const get = sharedReads(store.read);
    const early = get("order");
    store.write(1);
    const late = get("order");
    await store.answerNext();
    store.write(2);
    const latest = get("order");
    await store.answerNext();
    await store.answerNext();
    expect(await Promise.all([early, late, latest])).toEqual([0, 1, 2]);
  });

  test("keeps ids apart, and nothing of a read that is over", async () => {
    const store = slowStore();
    const get = sharedReads(store.read);
    const both = Promise.all([get("one"), get("other")]);
    expect(store.reading()).toBe(2);
    await store.answerNext();
    await store.answerNext();
    await both;
    store.write(1);
    const again = get("one");
    await store.answerNext();
    expect(await again).toBe(1);
  });

  test("shares a failure and reads again after it", async () => {
    let reads = 0;
    const get = sharedReads(() => {
      reads += 1;
      return reads < 3 ? Promise.reject(new Error(`read ${reads}`)) : Promise.resolve("here");
    });
    const settled = await Promise.allSettled([get("order"), get("order"), get("order")]);
    expect(settled.map((each) => (each.status === "rejected" ? String(each.reason) : each.value))).toEqual([
      "Error: read 1",
      "Error: read 2",
      "Error: read 2",
    ]);
    expect(await get("order")).toBe("here");
  });
});
