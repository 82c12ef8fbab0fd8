import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { spawnProcess, until } from "../../support/index.ts";
import { countPayments, newShopper } from "./client.ts";
import type { Shopper } from "./client.ts";
import { persist } from "./persist.ts";
import { lockOrder } from "./row-lock.ts";
import { openStage, unique } from "./stage.ts";
import type { Stage } from "./stage.ts";

const DUPLICATES = 300;
const HANDLER_MS = 2000;
/** Spreads the other requests over the whole storm, its retries included. */
const PACE_MS = 40;
let stage: Stage;

beforeAll(async () => {
  stage = await openStage();
});
afterAll(() => stage.close());

// A machine that is busy with something else can spoil one measurement; starved connections spoil every one.
test(
  "a storm of 300 duplicates of one key leaves another key within ten times its idle latency",
  { retry: 2 },
  async () => {
    const { url } = await stage.startReplica({ poolSize: 5 });
    const hot = await newShopper(stage, url);
    const others = await Promise.all(Array.from({ length: 70 }, () => newShopper(stage, url)));
    const client = spawnProcess("test/e2e/payments/latency-client.mjs");
    const latency = async ({ token, charge }: Shopper): Promise<number> => {
      const key = unique("key");
      client.stdin.write(`${JSON.stringify({ url: `${url}/payments`, token, key, body: charge })}\n`);
      const [, status, ms] = await client.waitForLine(new RegExp(`^${key} (\\d+) (.+)$`, "u"));
      expect(status).toBe("201");
      return Number(ms);
    };
    const idle: number[] = [];
    for (const other of others.splice(0, 20)) {
      idle.push(await latency(other));
    }

    const lock = await lockOrder(stage, hot.charge.orderId);
    const call = { token: hot.token, key: unique("key"), body: hot.charge };
    let tries = 0;
    const onTry = () => (tries += 1);
    const storm = Array.from({ length: DUPLICATES }, () => persist(`${url}/payments`, call, { onTry }));
    await lock.victim();
    const over = AbortSignal.timeout(HANDLER_MS);
    // The first wave arrives in one instant, as no network delivers it; all that come back are spread as Retry-After asks.
    await until(() => tries >= DUPLICATES - 1 || over.aborted, { what: "an answer to the first wave" });
    const stormy: number[] = [];
    for (const other of others) {
      if (over.aborted && stormy.length > 4) {
        break;
      }
      stormy.push(await latency(other));
      await delay(PACE_MS);
    }
    await (over.aborted || once(over, "abort"));
    await lock.release();
    const ended = await Promise.all(storm);
    await client.kill();

    console.log(`latency of another key: idle ${summary(idle)}; in the storm ${summary(stormy)}`);
    expect(median(stormy)).toBeLessThan(10 * median(idle));
    expect(new Set(ended.map(({ final }) => final.text)).size).toBe(1);
    expect(ended.flatMap((each) => each.tries).filter((status) => status !== 409)).toEqual([]);
    expect(await countPayments(stage, hot.charge.orderId)).toBe(1);
  },
);

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

const summary = (values: readonly number[]): string =>
  `median ${median(values).toFixed(1)} ms, worst ${Math.max(...values).toFixed(1)} ms of ${values.length}`;
