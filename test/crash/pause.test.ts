import type { Outcome } from "idemkit";
import { runOnce } from "idemkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { charge, chargeOf, paymentsDatabase } from "../integration/postgres/support/payments.ts";
import type { Payments } from "../integration/postgres/support/payments.ts";
import { spawnProcess, until } from "../support/index.ts";
import type { TestProcess } from "../support/index.ts";

let payments: Payments;
beforeAll(async () => {
  payments = await paymentsDatabase();
});
afterAll(() => payments[Symbol.asyncDispose]());

/** A process that is stopped at this point, as by SIGSTOP, a frozen machine or a long garbage collection. */
async function frozenAt(point: string, key: string): Promise<TestProcess> {
  const env = { DATABASE_URL: payments.test.connectionString, KEY: key, PAUSE_AT: point, IDLE_MS: "200" };
  const frozen = spawnProcess("test/crash/fixtures/charge.mjs", { env });
  await frozen.waitForLine(/^paused$/);
  await frozen.kill("SIGSTOP");
  return frozen;
}

async function wake(frozen: TestProcess): Promise<string> {
  frozen.stdin.write("go on\n");
  await frozen.kill("SIGCONT");
  const [line] = await frozen.waitForLine(/^(?:outcome|error) .*/);
  await frozen.exited;
  return line;
}

async function elsewhere(key: string): Promise<Outcome<unknown>> {
  const database = payments.process();
  return until(async () => {
    const outcome = await runOnce(database, chargeOf(key, { command: { amount: "10" } }), (once) =>
      charge(once),
    );
    return outcome.outcome === "in-progress" ? undefined : outcome;
  });
}

async function noneIdle(): Promise<void> {
  await until(async () => {
    const { rows } = await payments.admin.query(
      "select from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'",
    );
    return rows.length === 0;
  });
}

describe.each(["after-claim", "before-finish", "before-commit"])("a process frozen %s", (point) => {
  test("loses its key in bounded time, and awake can neither commit nor answer as if it had", async () => {
    const key = `frozen-${point}`;
    await using frozen = await frozenAt(point, key);
    const taken = await elsewhere(key);
    expect(taken).toMatchObject({ outcome: "executed" });
    const said = await wake(frozen);
    // Either its own statement met the lost connection, or its COMMIT did and the other's record was found.
    expect(said).toMatch(/^error \{"code":"idempotency_unavailable"|^outcome \{"outcome":"replayed"/);
    if (said.startsWith("outcome")) {
      expect(JSON.parse(said.slice("outcome ".length))).toEqual({ ...taken, outcome: "replayed" });
    }
    expect(await payments.payments(key)).toEqual([{ key, amount: 10 }]);
    expect(await elsewhere(key)).toEqual({ ...taken, outcome: "replayed" });
  });

  test("that nobody has replaced may take the key up again, and charges once", async () => {
    const key = `frozen-alone-${point}`;
    await using frozen = await frozenAt(point, key);
    await noneIdle();
    const said = await wake(frozen);
    const after = await elsewhere(key);
    const wanted = said.startsWith('outcome {"outcome":"executed"') ? "replayed" : "executed";
    expect(after).toMatchObject({ outcome: wanted });
    expect(await payments.payments(key)).toHaveLength(1);
  });
});
