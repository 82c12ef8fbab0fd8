import fc from "fast-check";
import { describe, expect, test } from "vitest";

import { commandOf, fingerprintOf, sameFingerprint } from "../../../src/core/fingerprint.ts";

const command = fc.oneof(
  fc.constant(undefined),
  fc.jsonValue().filter((value) => !/e\+|\d{16}/.test(JSON.stringify(value))),
  fc.uint8Array(),
);
const context = fc.array(fc.string({ unit: "binary" }), { maxLength: 3 });

describe("a fingerprint", () => {
  test("is equal for equal commands, and differs for others", () => {
    fc.assert(
      fc.property(command, context, command, context, (one, here, two, there) => {
        const [first, second] = [fingerprintOf(commandOf(one), here), fingerprintOf(commandOf(two), there)];
        expect(sameFingerprint(first, fingerprintOf(commandOf(structuredClone(one)), [...here]))).toBe(true);
        const same = JSON.stringify([here, kindOf(one), one]) === JSON.stringify([there, kindOf(two), two]);
        if (same) expect(first).toEqual(second);
        if (Buffer.compare(first, second) === 0) expect([here, one]).toEqual([there, two]);
      }),
    );
  });

  test.each([
    [[], ["a"]],
    [["a", "b"], ["ab"]],
    [
      ["a", "b"],
      ["b", "a"],
    ],
    [["1:a"], ["1", "a"]],
    [
      ["", "a"],
      ["a", ""],
    ],
  ])("tells the contexts %j and %j apart", (one, two) => {
    expect(fingerprintOf({ kind: "none" }, one)).not.toEqual(fingerprintOf({ kind: "none" }, two));
  });

  test("tells no body, an empty one, null and an empty text apart", () => {
    const all = [undefined, new Uint8Array(0), null, "", {}, []].map((given) =>
      Buffer.from(fingerprintOf(commandOf(given))).toString("hex"),
    );
    expect(new Set(all).size).toBe(all.length);
  });

  test("begins with its version, and one of another version is not judged", () => {
    const given = fingerprintOf({ kind: "none" });
    expect([given[0], given.length]).toEqual([1, 33]);
    const newer = Uint8Array.from(given);
    newer[0] = 2;
    expect(() => sameFingerprint(newer, given)).toThrow(
      expect.objectContaining({ code: "fingerprint_version_unknown" }) as Error,
    );
    expect(sameFingerprint(given.subarray(0, 20), given)).toBe(false);
  });
});

function kindOf(given: unknown): string {
  return commandOf(given).kind;
}
