import fc from "fast-check";
import { describe, expect, test } from "vitest";

import { identityText, lockOf } from "../../../src/core/identity.ts";
import type { Identity } from "../../../src/core/ports.ts";

const part = fc.oneof(fc.string(), fc.constantFrom("", "1", "1:", "2:a", "a1:b", "ab", "a", "b"));
const identity = fc.record<Identity>({ scope: part, operation: part, key: part });

describe("an identity", () => {
  test("has one text of its own", () => {
    fc.assert(
      fc.property(identity, identity, (one, two) => {
        if (identityText(one) === identityText(two)) expect(one).toEqual(two);
      }),
      { numRuns: 2000 },
    );
  });

  test("has one lock in each schema, a signed 64-bit integer that no part of another tenant's key reaches", () => {
    fc.assert(
      fc.property(identity, identity, part, part, (one, two, here, there) => {
        const locks = [lockOf(here, one), lockOf(there, two)] as const;
        expect(BigInt.asIntN(64, locks[0])).toBe(locks[0]);
        if (locks[0] === locks[1]) expect([here, one]).toEqual([there, two]);
      }),
      { numRuns: 2000 },
    );
  });

  test("has the same lock in every version: two that are deployed at once must exclude each other", () => {
    expect(lockOf("idemkit", { scope: "customer-1", operation: "charge", key: "key-1" })).toBe(
      -5_314_130_324_810_793_287n,
    );
  });
});
