import fc from "fast-check";
import { v1, v4, v7 } from "uuid";
import { expect, test } from "vitest";

import { derivedEventId, firstEventIdAt, isUuid, recordedEventId, timeOfEventId } from "./event-id.ts";

test("a UUIDv7 is recorded as it is, in lower case", () => {
  const id = v7();
  expect([recordedEventId(id), recordedEventId(id.toUpperCase())]).toEqual([id, id]);
});

test("every other UUID is recorded under one derived from it, alike in any case", () => {
  for (const id of [v4(), v1(), "00000000-0000-0000-0000-000000000000"]) {
    const recorded = recordedEventId(id);
    expect(recorded).toMatch(/^ff[\da-f]{6}-[\da-f]{4}-8[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
    expect([recordedEventId(id.toUpperCase()), recordedEventId(recorded)]).toEqual([recorded, recorded]);
  }
});

test("derived ids never change: records of earlier versions must be found", () => {
  expect(derivedEventId("stripe", "evt_1")).toBe("ff66645e-a5e8-8fbd-9f29-77b76c918972");
});

test("derived ids keep the bounds of their parts, and lie behind every time", () => {
  expect(derivedEventId("ab", "c")).not.toBe(derivedEventId("a", "bc"));
  expect(derivedEventId("a", "b", "c")).not.toBe(derivedEventId("a", "bc"));
  fc.assert(
    fc.property(fc.string(), fc.string(), (source, id) => {
      const derived = derivedEventId(source, id);
      expect(isUuid(derived)).toBe(true);
      expect(derived > "ff").toBe(true);
      expect(timeOfEventId(derived)).toBeUndefined();
    }),
  );
});

test("the time of an id and the bounds of a time agree", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2 ** 47 }), (ms) => {
      const id = v7({ msecs: ms });
      expect(timeOfEventId(id)).toBe(ms);
      expect(firstEventIdAt(ms) <= id && id < firstEventIdAt(ms + 1)).toBe(true);
    }),
  );
});

test("what is no UUID is told apart", () => {
  expect(["", "evt_1", `${v7()}0`, v7().replaceAll("-", "")].some((text) => isUuid(text))).toBe(false);
});
