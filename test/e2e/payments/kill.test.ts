import type { CrashPoint } from "idemkit/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../support/index.ts";
import { ask, countPayments, newShopper } from "./client.ts";
import type { Call } from "./client.ts";
import { persist } from "./persist.ts";
import { openStage, unique } from "./stage.ts";
import type { Replica, Stage } from "./stage.ts";

const ROUNDS = 3;
let stage: Stage;
let steady: Replica;

beforeAll(async () => {
  stage = await openStage();
  steady = await stage.startReplica();
});
afterAll(() => stage.close());

/** Sends the command to a process that is killed at the point. */
const sendAndCrash = async (point: CrashPoint, call: Call): Promise<void> => {
  const script = "test/e2e/payments/crashing-service.mjs";
  const victim = await stage.startReplica({ script, poolSize: 2, env: { CRASH_POINT: point } });
  const answer = await ask(`${victim.url}/payments`, call).catch(() => undefined);
  expect(answer).toBeUndefined();
  expect(await victim.process.exited).toMatchObject({ signal: "SIGKILL" });
  await until(noTransaction, { what: "the end of the killed process's transaction" });
};

const noTransaction = async (): Promise<boolean> => {
  const { rows } = await stage.pool.query(
    "select 1 from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'",
  );
  return rows.length === 0;
};

const newCall = async (): Promise<{ call: Call; orderId: string }> => {
  const { token, charge } = await newShopper(stage, steady.url);
  return { call: { token, key: unique("key"), body: charge }, orderId: charge.orderId };
};

/** Retries to the first final answer and three times more; gives what came back that isn't that answer, replayed. */
const differingAnswers = async (call: Call): Promise<string[]> => {
  const { final } = await persist(`${steady.url}/payments`, call);
  const differing = final.status === 201 ? [] : [final.text];
  for (let retry = 0; retry < 3; retry += 1) {
    const again = await ask(`${steady.url}/payments`, call);
    if (again.text !== final.text || !again.headers.has("idempotent-replayed")) {
      differing.push(again.text);
    }
  }
  return differing;
};

describe("a SIGKILL of the service", () => {
  test.each<[string, CrashPoint, number]>([
    ["before the claim", "before-claim", 0],
    ["after the claim", "after-claim", 0],
    ["after the business write", "before-finish", 0],
    ["before COMMIT", "before-commit", 0],
    ["after COMMIT and before the response", "after-commit", 1],
  ])("%s leaves one payment for the key after a retry", async (_where, point, left) => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const { call, orderId } = await newCall();
      await sendAndCrash(point, call);
      expect(await countPayments(stage, orderId)).toBe(left);
      expect(await differingAnswers(call)).toEqual([]);
      expect(await countPayments(stage, orderId)).toBe(1);
    }
  });

  test("at one point after the other, for one key, leaves one payment", async () => {
    const { call, orderId } = await newCall();
    for (const point of [
      "before-claim",
      "after-claim",
      "before-finish",
      "before-commit",
      "after-commit",
    ] as const) {
      await sendAndCrash(point, call);
    }
    expect(await differingAnswers(call)).toEqual([]);
    expect(await countPayments(stage, orderId)).toBe(1);
  });
});
