import type { Outcome } from "idemkit";
import { runOnce } from "idemkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { charge, chargeOf, isolations, paymentsDatabase } from "../integration/postgres/support/payments.ts";
import type { Payments } from "../integration/postgres/support/payments.ts";
import { spawnProcess, until } from "../support/index.ts";

let payments: Payments;
beforeAll(async () => {
  payments = await paymentsDatabase();
});
afterAll(() => payments[Symbol.asyncDispose]());

const command = { amount: "10" };

/** A client's retries, at another process, until there is a final answer. */
async function retried(key: string): Promise<Outcome<unknown>> {
  const database = payments.process();
  return until(async () => {
    const outcome = await runOnce(database, chargeOf(key, { command }), (once) => charge(once));
    return outcome.outcome === "in-progress" ? undefined : outcome;
  });
}

function withoutName(outcome: object): object {
  return { ...outcome, outcome: undefined };
}

/** What the dead process leaves behind: nothing before its COMMIT, everything after it. */
const points = [
  { point: "before-claim", left: "executed" },
  { point: "after-claim", left: "executed" },
  { point: "before-finish", left: "executed" },
  { point: "before-commit", left: "executed" },
  { point: "after-commit", left: "replayed" },
] as const;

describe.each(points)("a process killed $point", ({ point, left }) => {
  test.each([0, 1, 2])(
    "leaves a key that its retry finds %#: one payment, and one answer for every retry",
    async (n) => {
      const key = `killed-${point}-${n}`;
      const env = {
        DATABASE_URL: payments.test.connectionString,
        KEY: key,
        STOP_AT: point,
        ISOLATION: isolations[n] ?? "",
        PIPELINE: String(n === 1),
      };
      const doomed = spawnProcess("test/crash/fixtures/charge.mjs", { env });
      expect(await doomed.exited).toEqual({ code: null, signal: "SIGKILL" });
      const first = await retried(key);
      expect(first).toMatchObject({ outcome: left, value: { key, amount: 10 } });
      for (let again = 0; again < 3; again += 1) {
        const repeat = await retried(key);
        expect(repeat).toMatchObject({ outcome: "replayed" });
        expect(withoutName(repeat)).toEqual(withoutName(first));
      }
      expect(await payments.payments(key)).toEqual([{ key, amount: 10 }]);
      expect(doomed.lines).toEqual([]);
    },
  );
});
