import fc from "fast-check";
import { describe, expect, test } from "vitest";

import { partitionWork } from "../../../src/kafka/partition-work.ts";
import type { Entry } from "../../../src/kafka/partition-work.ts";

function entry(offset: number, key: string): Entry {
  return { offset: BigInt(offset), key, event: undefined, malformed: undefined, done: false };
}

describe("the work of a partition", () => {
  test("commits no offset behind which something isn't done, whatever ends first", () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.record({ key: fc.constantFrom("a", "b", "c", "d"), gap: fc.integer({ min: 1, max: 3 }) }),
          {
            minLength: 1,
            maxLength: 60,
          },
        ),
        fc.infiniteStream(fc.nat()),
        (records, choices) => {
          const work = partitionWork({ topic: "payment", partition: 0 });
          let offset = 0;
          const all = records.map(({ key, gap }) => entry((offset += gap), key));
          work.add(all);
          const taken: Entry[] = [];
          const order: Entry[] = [];
          while (order.length < all.length) {
            taken.push(...work.take(3));
            const at = choices.next().value % taken.length;
            const [ended] = taken.splice(at, 1);
            if (ended === undefined) throw new Error("nothing in flight although not all is done");
            if (choices.next().value % 5 === 0) {
              work.giveBack([ended]);
              continue;
            }
            work.settle(ended);
            order.push(ended);
            const undone = all.find(({ done }) => !done)?.offset;
            const { offset: reached = 0n } = work.toCommit() ?? {};
            expect(reached).toBeLessThanOrEqual(undone ?? BigInt(offset) + 1n);
            expect(work.uncommitted).toBe(
              undone === undefined ? 0 : all.filter((each) => each.offset >= undone).length,
            );
          }
          expect(work.toCommit()?.offset).toBe(BigInt(offset) + 1n);
        },
      ),
    );
  });

  test("never has a key in two batches at once, and takes each key's records in order", () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 50 }),
        fc.infiniteStream(fc.nat()),
        (keys, choices) => {
          const work = partitionWork({ topic: "payment", partition: 0 });
          work.add(keys.map((key, at) => entry(at, key)));
          let batches: Entry[][] = [];
          const seen = new Map<string, bigint>();
          let left = keys.length;
          while (left > 0) {
            const batch = work.take(1 + (choices.next().value % 4));
            if (batch.length > 0) batches.push(batch);
            const inFlight = batches.map((each) => new Set(each.map(({ key }) => key)));
            for (const [at, set] of inFlight.entries()) {
              for (const other of inFlight.slice(at + 1)) {
                for (const key of other) expect(set.has(key)).toBe(false);
              }
            }
            for (const { key, offset } of batch) {
              expect(offset).toBeGreaterThan(seen.get(key) ?? -1n);
              seen.set(key, offset);
            }
            const [ended = [], ...rest] = batches;
            batches = rest;
            for (const each of ended) work.settle(each);
            left -= ended.length;
          }
        },
      ),
    );
  });

  test("commits nothing once it is revoked, and starts nothing once it is closed", async () => {
    const work = partitionWork({ topic: "payment", partition: 0 });
    work.add([entry(1, "a"), entry(2, "b")]);
    const [first] = work.take(1);
    work.close();
    expect(work.take(10)).toEqual([]);
    if (first) work.settle(first);
    expect(work.toCommit()).toMatchObject({ offset: 2n });
    work.revoke();
    expect(work.toCommit()).toBeUndefined();
    await work.idle();
  });
});
