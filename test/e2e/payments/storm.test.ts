import { once } from "node:events";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ask, countPayments, newShopper } from "./client.ts";
import { persist } from "./persist.ts";
import { lockOrder } from "./row-lock.ts";
import { openStage, unique } from "./stage.ts";
import type { Stage } from "./stage.ts";

const DUPLICATES = 300;
const HANDLER_MS = 2000;
let stage: Stage;

beforeAll(async () => {
  stage = await openStage();
});
afterAll(() => stage.close());

test("answers another key within ten times its idle latency during a storm of 300 duplicates", async () => {
  const { url } = await stage.startReplica({ poolSize: 5 });
  const hot = await newShopper(stage, url);
  const others = await Promise.all(Array.from({ length: 60 }, () => newShopper(stage, url)));
  const latency = async (): Promise<number> => {
    const { token, charge } = others.pop() ?? hot;
    const begun = performance.now();
    const answer = await ask(`${url}/payments`, { token, key: unique("key"), body: charge });
    expect(answer.status).toBe(201);
    return performance.now() - begun;
  };
  const idle = [];
  for (let round = 0; round < 20; round += 1) {
    idle.push(await latency());
  }

  const lock = await lockOrder(stage, hot.charge.orderId);
  const call = { token: hot.token, key: unique("key"), body: hot.charge };
  const storm = Array.from({ length: DUPLICATES }, () => persist(`${url}/payments`, call));
  await lock.victim();
  const over = AbortSignal.timeout(HANDLER_MS);
  const stormy: number[] = [];
  while (!over.aborted && others.length > 0) {
    stormy.push(await latency());
  }
  await (over.aborted || once(over, "abort"));
  await lock.release();
  const ended = await Promise.all(storm);

  console.log(`latency of another key: idle ${summary(idle)}; in the storm ${summary(stormy)}`);
  expect(median(stormy)).toBeLessThan(10 * median(idle));
  expect(new Set(ended.map(({ final }) => final.text)).size).toBe(1);
  expect(ended.flatMap(({ tries }) => tries).filter((status) => status !== 409)).toEqual([]);
  expect(await countPayments(stage, hot.charge.orderId)).toBe(1);
});

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

const summary = (values: readonly number[]): string =>
  `median ${median(values).toFixed(1)} ms, worst ${Math.max(...values).toFixed(1)} ms of ${values.length}`;
