import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../support/index.ts";
import { ask, countPayments, newShopper } from "./client.ts";
import type { ChargeBody } from "./client.ts";
import { lockCommits, lockOrder } from "./row-lock.ts";
import { openStage, unique } from "./stage.ts";
import type { Stage } from "./stage.ts";

let stage: Stage;

beforeAll(async () => {
  stage = await openStage();
});
afterAll(() => stage.close());

describe("a service that is told to stop", () => {
  const inTheMiddle = (charge: ChargeBody) => lockOrder(stage, charge.orderId);
  const atCommit = () => lockCommits(stage);

  test.each([
    ["SIGTERM", "waits in the middle of its transaction", inTheMiddle],
    ["SIGINT", "waits in the middle of its transaction", inTheMiddle],
    ["SIGTERM", "waits at its COMMIT", atCommit],
  ] as const)("finishes on %s a request that %s, and ends with code 0", async (signal, _where, hold) => {
    const { url, process: service } = await stage.startReplica();
    const { token, charge } = await newShopper(stage, url);
    const lock = await hold(charge);
    const running = ask(`${url}/payments`, { token, key: unique("key"), body: charge });
    await lock.victim();
    const ended = service.kill(signal);
    const refused = () =>
      ask(`${url}/health`).then(
        () => false,
        () => true,
      );
    await until(refused, { what: "no new requests are taken" });
    await lock.release();
    expect((await running).status).toBe(201);
    expect(await ended).toEqual({ code: 0, signal: null });
    expect(await countPayments(stage, charge.orderId)).toBe(1);
  });
});

test("a service that is told to stop doesn't wait for a connection that was never used", async () => {
  const { url, process: service } = await stage.startReplica();
  const unused = connect(Number(new URL(url).port), "127.0.0.1");
  await once(unused, "connect");
  const closed = once(unused, "close");
  expect(await service.kill("SIGTERM")).toEqual({ code: 0, signal: null });
  await closed;
});

describe("a service whose surroundings fail", () => {
  test("answers 503, not 401, while the issuer's keys can't be fetched", async () => {
    const { url } = await stage.startReplica({ env: { JWKS_URL: "http://127.0.0.1:1/jwks.json" } });
    const answer = await ask(`${url}/orders`, {
      token: await stage.token("alice"),
      key: unique("key"),
      body: {},
    });
    expect(answer.status).toBe(503);
    expect(answer.json["code"]).toBe("issuer_unavailable");
    expect(answer.headers.get("retry-after")).toBe("1");
  });

  test("answers nothing worse than 503 while all of its connections are taken, and goes on afterwards", async () => {
    const { url } = await stage.startReplica({ poolSize: 1 });
    const { token, charge } = await newShopper(stage, url);
    const lock = await lockOrder(stage, charge.orderId);
    const running = ask(`${url}/payments`, { token, key: unique("key"), body: charge });
    await lock.victim();
    // The database ends the wait for the row after lockTimeoutMs, the pool the wait for a connection at the same time.
    const [read, charged] = await Promise.all([ask(`${url}/orders/${charge.orderId}`, { token }), running]);
    await lock.release();
    expect([200, 503]).toContain(read.status);
    expect(charged.status).toBe(503);
    expect((await ask(`${url}/orders/${charge.orderId}`, { token })).status).toBe(200);
    expect(await countPayments(stage, charge.orderId)).toBe(0);
  });

  test("says what is missing where its configuration is wrong", async () => {
    await expect(stage.startReplica({ env: { ISSUER: "" } })).rejects.toThrow("ISSUER must be set");
  });
});
