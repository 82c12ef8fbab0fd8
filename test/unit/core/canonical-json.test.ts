import { isDeepStrictEqual } from "node:util";
import { runInNewContext } from "node:vm";

import fc from "fast-check";
import { describe, expect, test } from "vitest";

import { canonicalJson } from "../../../src/core/canonical-json.ts";

/** JSON as a client may write it: any order of members, any unicode, numbers that doubles hold exactly enough. */
const json = fc.jsonValue({ maxDepth: 6, stringUnit: "binary" }).filter((value) => isSafe(value));

function isSafe(value: unknown): boolean {
  if (typeof value === "number") {
    return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
  }
  if (typeof value !== "object" || value === null) return true;
  return Object.values(value).every(isSafe);
}

/** The same JSON with the members of every object in another order. */
function shuffled(value: unknown, random: () => number): unknown {
  if (Array.isArray(value)) return value.map((item) => shuffled(item, random));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([name, member]: [string, unknown]) => ({
    name,
    member,
    order: random(),
  }));
  const sorted = entries.sort((a, b) => a.order - b.order);
  return Object.fromEntries(sorted.map(({ name, member }) => [name, shuffled(member, random)]));
}

/** What the handler sees of it: plain objects. */
function plain(value: unknown): unknown {
  const text = JSON.stringify(value);
  return JSON.parse(text) as unknown;
}

function nested(depth: number): unknown {
  return JSON.parse("[".repeat(depth) + "]".repeat(depth)) as unknown;
}

describe("canonical JSON", () => {
  test("does not depend on the order of members", () => {
    fc.assert(
      fc.property(json, fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true })), (value, orders) => {
        const random = (): number => Number(orders.next().value);
        expect(canonicalJson(shuffled(value, random))).toBe(canonicalJson(value));
      }),
    );
  });

  test("is JSON that means the value it was made from", () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(JSON.parse(canonicalJson(value))).toEqual(plain(value));
      }),
    );
  });

  /** So few values that two drawn at random are often near each other, or equal. */
  const { near } = fc.letrec((tie) => ({
    near: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom(null, true, "", "a", "1", "null", 0, 1, "[]", "{}"),
      fc.array(tie("near"), { maxLength: 2 }),
      fc.dictionary(fc.constantFrom("a", "b", "1"), tie("near"), { maxKeys: 2, noNullPrototype: true }),
    ),
  }));

  test("is equal for what the handler sees as equal, and differs for everything else", () => {
    fc.assert(
      fc.property(near, near, (one, two) => {
        expect(canonicalJson(one) === canonicalJson(two)).toBe(isDeepStrictEqual(one, two));
      }),
      { numRuns: 5000 },
    );
  });

  // RFC 8785, section 3.2.2 and 3.2.3.
  test("is that of RFC 8785's own example", () => {
    const given = JSON.parse(
      '{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],' +
        '"string":"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/","literals":[null,true,false]}',
    ) as { numbers: number[] };
    given.numbers.splice(1, 1); // 1E30 is an integer that doubles cannot tell from its neighbours: refused here
    expect(canonicalJson(given)).toBe(
      '{"literals":[null,true,false],"numbers":[333333333.3333333,4.5,0.002,1e-27],' +
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    );
    expect(
      canonicalJson({ "\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\u{1f600}": 5, "\u0080": 6, "\u00f6": 7 }),
    ).toBe('{"\\r":2,"1":4,"\u0080":6,"\u00f6":7,"\u20ac":1,"\u{1f600}":5,"\ufb33":3}');
  });

  test("takes the last of duplicate members, as the handler does", () => {
    expect(canonicalJson(JSON.parse('{"a":1,"a":2}'))).toBe('{"a":2}');
  });

  test("keeps a member called __proto__ apart from none", () => {
    expect(canonicalJson(JSON.parse('{"__proto__":{"admin":true}}'))).toBe('{"__proto__":{"admin":true}}');
  });

  test("writes -0 as 0, escapes lone surrogates, leaves undefined members out and honours toJSON", () => {
    expect(canonicalJson([-0, "\ud800"])).toBe('[0,"\\ud800"]');
    expect(canonicalJson({ b: undefined, a: new Date(0) })).toBe('{"a":"1970-01-01T00:00:00.000Z"}');
  });

  test.each([
    [2 ** 53, "/"],
    [{ order: { lines: [{ quantity: -(2 ** 53) }] } }, "/order/lines/0/quantity"],
    [[Number.NaN], "/0"],
    [[Number.POSITIVE_INFINITY], "/0"],
    [[1e300], "/0"],
  ])("refuses a number that is not exact in %j, and says where", (value, at) => {
    expect(() => canonicalJson(value)).toThrow(
      expect.objectContaining({ code: "command_number_unsafe", details: { at } }) as Error,
    );
  });

  test("takes a hundred levels and refuses the next, however deep it goes", () => {
    expect(canonicalJson(nested(100))).toHaveLength(200);
    for (const depth of [101, 3000, 200_000]) {
      expect(() => canonicalJson(nested(depth))).toThrow(
        expect.objectContaining({ code: "command_too_deep" }) as Error,
      );
    }
    const loop: unknown[] = [];
    loop.push(loop, loop);
    expect(() => canonicalJson(loop)).toThrow(expect.objectContaining({ code: "command_too_deep" }) as Error);
  });

  test.each([
    1n,
    () => 1,
    Symbol("s"),
    undefined,
    [undefined],
    new Map([[1, 2]]),
    new Set([1]),
    /a/,
    new Error("e"),
    Promise.resolve(),
    new URLSearchParams("a=1"),
    new Object(1),
    new Object("text"),
    new Uint8Array(1),
    new ArrayBuffer(1),
    runInNewContext("new Map([[1, 2]])"),
  ])("refuses what would look like another command: %o", (value) => {
    const given: unknown = value;
    const commands = [given, { member: given }, [given]];
    for (const command of commands) {
      if (value === undefined && !Array.isArray(command) && command !== undefined) continue; // left out, as in JSON
      expect(() => canonicalJson(command)).toThrow(
        expect.objectContaining({ code: "command_not_json" }) as Error,
      );
    }
  });

  test("takes objects of a class, of no prototype and of another realm by their members", () => {
    class CreateOrder {
      readonly sku = "a";
    }
    const bare = Object.assign(Object.create(null) as object, { sku: "a" });
    for (const command of [new CreateOrder(), bare, runInNewContext("({ sku: 'a' })")]) {
      expect(canonicalJson(command)).toBe('{"sku":"a"}');
    }
  });
});
