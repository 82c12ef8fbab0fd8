import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../support/index.ts";
import { ask, countPayments, newShopper } from "./client.ts";
import { persist } from "./persist.ts";
import { backendGone, lockOrder } from "./row-lock.ts";
import { openStage, unique } from "./stage.ts";
import type { Stage } from "./stage.ts";

/** The default `idleTimeoutMs` of an operation, and what a busy machine may add. */
const BOUND_MS = 10_000 + 5000;
let stage: Stage;

beforeAll(async () => {
  stage = await openStage();
});
afterAll(() => stage.close());

test("frees the key of a process that is stopped in a handler, which can't commit when it wakes", async () => {
  const paused = await stage.startReplica();
  const other = await stage.startReplica();
  const { token, charge } = await newShopper(stage, other.url);
  const call = { token, key: unique("key"), body: charge };
  const lock = await lockOrder(stage, charge.orderId);
  const lost = ask(`${paused.url}/payments`, call);
  const victim = await lock.victim();
  await paused.process.kill("SIGSTOP");
  await lock.release();

  const meanwhile = await ask(`${other.url}/payments`, call);
  expect(meanwhile.json["code"]).toBe("operation_in_progress");
  expect(meanwhile.headers.get("retry-after")).toBe("1");
  await backendGone(stage, victim, BOUND_MS);
  expect(await countPayments(stage, charge.orderId)).toBe(0);
  const executed = await ask(`${other.url}/payments`, call);
  expect(executed.status).toBe(201);
  expect(executed.headers.has("idempotent-replayed")).toBe(false);

  await paused.process.kill("SIGCONT");
  const woken = await lost;
  // It may say "come back", or give the other's stored answer; its own payment was never made.
  expect([503, 201]).toContain(woken.status);
  expect(woken.status === 503 || woken.text === executed.text).toBe(true);
  expect(woken.headers.has(woken.status === 503 ? "retry-after" : "idempotent-replayed")).toBe(true);
  expect(await countPayments(stage, charge.orderId)).toBe(1);
  await until(async () => (await ask(`${paused.url}/ready`)).status === 200, {
    what: "the woken process is ready",
  });
  expect((await persist(`${paused.url}/payments`, call)).final.text).toBe(executed.text);
});
