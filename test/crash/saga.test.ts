import { setTimeout as delay } from "node:timers/promises";

import { afterAll, beforeAll, expect, test } from "vitest";

import { ask } from "../e2e/payments/client.ts";
import { movementsOf, newBuyer, shortTimes, startProviderProcess } from "../e2e/payments/provider-stage.ts";
import type { Buyer, ProviderProcess } from "../e2e/payments/provider-stage.ts";
import { openStage, unique } from "../e2e/payments/stage.ts";
import type { Replica, Stage } from "../e2e/payments/stage.ts";
import { until } from "../support/index.ts";

const script = "test/crash/fixtures/crashing-provider-service.mjs";
let stage: Stage;
let provider: ProviderProcess;
/** Serves requests and runs nothing by itself. */
let front: Replica;

beforeAll(async () => {
  stage = await openStage();
  provider = await startProviderProcess();
  front = await stage.startReplica({ env: settings({ BACKGROUND: "off" }) });
  await stage.pool.query(`
    insert into public.stock (sku, on_hand, recalled) values ('teapot', 1000000, false), ('unsafe', 1000000, true)`);
});
afterAll(async () => {
  await provider.close();
  await stage.close();
});

const settings = (env: Record<string, string>): Record<string, string> => ({
  ...shortTimes,
  PROVIDER_URL: provider.url,
  BACKGROUND_EVERY_MS: "30",
  ...env,
});

interface Started {
  readonly buyer: Buyer;
  readonly id: string;
}

async function checkOut(sku: string): Promise<Started> {
  const buyer = await newBuyer(stage, front.url, sku);
  const { orderId, token } = buyer;
  const { status, json } = await ask(`${front.url}/checkouts`, {
    token,
    key: unique("key"),
    body: { orderId },
  });
  expect(status).toBe(202);
  return { buyer, id: String(json["id"]) };
}

async function stateOf({ buyer, id }: Started): Promise<string> {
  return String((await ask(`${front.url}/checkouts/${id}`, { token: buyer.token })).json["state"]);
}

const ends = new Set(["committed", "compensated", "uncertain"]);

/** Kills a runner at its n-th durable step, for every n there is; gives the checkouts that were left behind. */
async function killedEverywhere(sku: string): Promise<Started[]> {
  const left: Started[] = [];
  for (let at = 1; ; at += 1) {
    const started = await checkOut(sku);
    const env = settings({ CRASH_AT: String(at), LEASE_MS: "3600000" });
    const runner = await stage.startReplica({ script, poolSize: 3, env });
    const death = runner.process.exited.then(() => "died" as const);
    const finished = until(async () => ends.has(await stateOf(started)), { timeoutMs: 30_000 }).then(
      () => "finished" as const,
    );
    const what = await Promise.race([death, finished]);
    // It may have died right after the last step: an answer of the front doesn't tell.
    const end = what === "finished" ? await Promise.race([death, delay(300, "finished" as const)]) : what;
    await runner.process.kill("SIGKILL");
    left.push(started);
    if (end === "finished") return left;
  }
}

/** Ends the leases of the dead, and has one runner finish it all. */
async function finishAll(left: readonly Started[]): Promise<string[]> {
  await stage.pool.query(`
    update idemkit.saga set lease_expires_at = '-infinity' where state in ('running', 'compensating')`);
  const runner = await stage.startReplica({ env: settings({}) });
  const states = async (): Promise<string[]> => Promise.all(left.map(stateOf));
  await until(async () => (await states()).every((state) => ends.has(state)), { timeoutMs: 30_000 });
  await runner.process.kill("SIGKILL");
  return states();
}

async function stockOf(sku: string): Promise<unknown> {
  const { rows } = await stage.pool.query({
    text: "select reserved, 1000000 - on_hand as sold from public.stock where sku = $1",
    values: [sku],
  });
  return rows[0];
}

const kindsOf = async ({ buyer }: Started): Promise<string> =>
  (await movementsOf(stage, provider, buyer.orderId)).map(({ kind }) => kind).join(" ");

const statusOf = async ({ buyer }: Started): Promise<unknown> =>
  (await ask(`${front.url}/orders/${buyer.orderId}`, { token: buyer.token })).json["status"];

test("a checkout whose runner is killed at every durable step is charged once and confirmed", async () => {
  const left = await killedEverywhere("teapot");
  // A claim, two local steps, an intent, a result and the end: without them this would prove nothing.
  expect(left.length).toBeGreaterThan(10);
  expect(new Set(await finishAll(left))).toEqual(new Set(["committed"]));
  expect(new Set(await Promise.all(left.map(kindsOf)))).toEqual(new Set(["charge"]));
  expect(new Set(await Promise.all(left.map(statusOf)))).toEqual(new Set(["paid"]));
  expect(await stockOf("teapot")).toEqual({ reserved: 0, sold: 2 * left.length });
});

test("a checkout that can't be confirmed, whose runner is killed at every durable step, is undone once", async () => {
  const left = await killedEverywhere("unsafe");
  expect(left.length).toBeGreaterThan(16);
  expect(new Set(await finishAll(left))).toEqual(new Set(["compensated"]));
  expect(new Set(await Promise.all(left.map(kindsOf)))).toEqual(new Set(["charge refund"]));
  expect(new Set(await Promise.all(left.map(statusOf)))).toEqual(new Set(["pending"]));
  expect(await stockOf("unsafe")).toEqual({ reserved: 0, sold: 0 });
});

test.each(["die-before", "die-after"] as const)(
  "a checkout survives the death of the provider: %s",
  async (next) => {
    const runner = await stage.startReplica({ env: settings({}) });
    await provider.turn({ next: [next] });
    const [, started] = await Promise.all([provider.restart(), checkOut("teapot")]);
    await until(async () => ends.has(await stateOf(started)), { timeoutMs: 30_000 });
    expect(await stateOf(started)).toBe("committed");
    expect(await kindsOf(started)).toBe("charge");
    await runner.process.kill("SIGKILL");
  },
);

test("a runner that is paused beyond its lease does nothing more when it goes on", async () => {
  const started = await checkOut("teapot");
  const sleeper = await stage.startReplica({
    script,
    poolSize: 3,
    env: settings({ PAUSE_POINT: "before-result" }),
  });
  await sleeper.process.waitForLine(/^paused$/);
  await sleeper.process.kill("SIGSTOP");
  const runner = await stage.startReplica({ env: settings({}) });
  await until(async () => ends.has(await stateOf(started)), { timeoutMs: 30_000 });
  await sleeper.process.kill("SIGCONT");
  sleeper.process.stdin.write("go on\n");
  const after = await checkOut("teapot");
  await until(async () => ends.has(await stateOf(after)), { timeoutMs: 30_000 });
  expect(await Promise.all([started, after].map(stateOf))).toEqual(["committed", "committed"]);
  expect(await Promise.all([started, after].map(kindsOf))).toEqual(["charge", "charge"]);
  await Promise.all([sleeper.process.kill("SIGKILL"), runner.process.kill("SIGKILL")]);
});
