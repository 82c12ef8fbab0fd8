import { createHmac } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

import { deadLetters } from "idemkit";
import { fromPg } from "idemkit/pg";
import { standardWebhooks, stripe, webhook } from "idemkit/webhook";
import type { WebhookContext, WebhookOptions } from "idemkit/webhook";
import express from "express";
import { Hono } from "hono";
import type pg from "pg";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { createDatabase, startCluster } from "../../support/index.ts";
import type { TestDatabase } from "../../support/index.ts";

interface ChargeEvent {
  readonly id: string;
  readonly type: string;
  readonly amount?: string;
}

const stripeSecret = "whsec_0123456789abcdef0123456789abcdef";
const standardSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await createDatabase();
  pool = database.pool();
  await pool.query("create table effect (event text)");
});
beforeEach(() => pool.query("truncate effect, idemkit.dead_letter, idemkit.event_attempt"));
afterAll(() => database.drop());

async function effects(): Promise<unknown[]> {
  return (await pool.query<{ event: string }>("select event from effect")).rows.map(({ event }) => event);
}

type Handle = (event: ChargeEvent, context: WebhookContext<pg.PoolClient>) => unknown;

const write: Handle = (event, { tx }) => tx.query("insert into effect values ($1)", [event.id]);

function psp(handler: Handle = write, options: Partial<WebhookOptions<pg.PoolClient, ChargeEvent>> = {}) {
  const errors: unknown[] = [];
  const hook = webhook<pg.PoolClient, ChargeEvent>(
    {
      database: fromPg(pool),
      consumer: "psp",
      verify: stripe(stripeSecret),
      onError: (error) => errors.push(error),
      ...options,
    },
    handler,
  );
  return Object.assign(hook, { errors });
}

function stripeSignature(
  body: string,
  { secret = stripeSecret, at = Date.now() / 1000, more = "" } = {},
): string {
  const t = Math.floor(at);
  return `t=${t},${more}v1=${createHmac("sha256", secret).update(`${t}.${body}`).digest("hex")},v0=abc`;
}

function delivery(body: string, headers?: Record<string, string>): Request {
  const signed = headers ?? { "stripe-signature": stripeSignature(body) };
  return new Request("http://shop.test/webhooks/psp", { method: "POST", body, headers: signed });
}

const charged = JSON.stringify({ id: "evt_1", type: "charge.succeeded", amount: "10.00" });

async function codeOf(response: Response): Promise<unknown> {
  return ((await response.json()) as { code?: unknown }).code;
}

test("an event takes effect once, however often the provider sends it", async () => {
  const hook = psp();
  const first = await hook(delivery(charged));
  expect([first.status, await first.json()]).toEqual([200, { outcome: "executed" }]);
  const again = await hook(delivery(charged));
  expect([again.status, await again.json()]).toEqual([200, { outcome: "duplicate" }]);
  expect(await effects()).toEqual(["evt_1"]);
});

test("ten deliveries of one event at once: all answered, one effect", async () => {
  const hook = psp(write, { consumer: "storm" });
  const answers = await Promise.all(Array.from({ length: 10 }, () => hook(delivery(charged))));
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  expect(await effects()).toEqual(["evt_1"]);
});

test("2xx is answered only after the commit", async () => {
  let goOn = (): void => {};
  let reached = (): void => {};
  const gate = new Promise<void>((resolve) => (goOn = resolve));
  const written = new Promise<void>((resolve) => (reached = resolve));
  const steps: string[] = [];
  const handle: Handle = async (event, context) => {
    await write(event, context);
    reached();
    await gate;
    steps.push("handled");
  };
  const hook = psp(handle, { consumer: "slow" });
  const sent = hook(delivery(charged)).then((response) => {
    steps.push("answered");
    return response;
  });
  await written;
  expect(await effects()).toEqual([]);
  goOn();
  expect((await sent).status).toBe(200);
  expect(steps).toEqual(["handled", "answered"]);
  expect(await effects()).toEqual(["evt_1"]);
});

test("a handler's failure is a 500 without its reason, leaves nothing, and the next delivery is handled", async () => {
  let runs = 0;
  const hook = psp(
    async (event, context) => {
      runs += 1;
      await write(event, context);
      if (runs === 1) throw new Error("secret detail");
    },
    { consumer: "flaky" },
  );
  const failed = await hook(delivery(charged));
  const text = await failed.text();
  expect(failed.status).toBe(500);
  expect(text).toContain("webhook_handler_failed");
  expect(text).not.toContain("secret");
  expect(hook.errors).toEqual([new Error("secret detail")]);
  expect(await effects()).toEqual([]);
  expect((await hook(delivery(charged))).status).toBe(200);
  expect(await effects()).toEqual(["evt_1"]);
});

test("by choice an event becomes a dead letter after so many deliveries, counted across processes", async () => {
  const fail = (): never => {
    throw new Error("no such account");
  };
  const statuses: number[] = [];
  for (let n = 0; n < 3; n += 1) {
    const hook = psp(fail, { consumer: "strict", deadLetterAfter: 3 });
    statuses.push((await hook(delivery(charged))).status);
  }
  expect(statuses).toEqual([500, 500, 200]);
  expect(await deadLetters(fromPg(pool), { consumer: "strict" })).toMatchObject([
    { topic: "webhook.stripe", key: "evt_1", type: "charge.succeeded", attempts: 3, reason: "poison" },
  ]);
});

test("whatever is wrong with a signature, the answer is the same", async () => {
  const hook = psp();
  const wrong: Record<string, string>[] = [
    {},
    { "stripe-signature": "" },
    { "stripe-signature": "t=1,v1=zz" },
    { "stripe-signature": stripeSignature(`${charged} `) },
    { "stripe-signature": stripeSignature(charged, { secret: "whsec_another_one_of_them" }) },
    { "stripe-signature": stripeSignature(charged, { at: Date.now() / 1000 - 301 }) },
    { "stripe-signature": stripeSignature(charged, { at: Date.now() / 1000 + 310 }) },
    {
      "stripe-signature": stripeSignature(charged).replace(/t=\d+/, `t=${Math.floor(Date.now() / 1000) - 1}`),
    },
    { "stripe-signature": stripeSignature(charged).replace("v1=", "v0=") },
  ];
  const answers = await Promise.all(wrong.map((headers) => hook(delivery(charged, headers))));
  const seen = await Promise.all(answers.map(async (answer) => [answer.status, await answer.text()]));
  expect(new Set(seen.map((each) => JSON.stringify(each))).size).toBe(1);
  expect(seen[0]?.[0]).toBe(401);
  expect(await effects()).toEqual([]);
});

test("one good signature among several is enough, and so is one of several secrets", async () => {
  const [old, fresh] = ["whsec_old_secret_of_the_endpoint", "whsec_new_secret_of_the_endpoint"];
  const hook = psp(write, { consumer: "rotating", verify: stripe([old, fresh]) });
  const more = "v1=00112233,";
  expect(
    (await hook(delivery(charged, { "stripe-signature": stripeSignature(charged, { secret: fresh, more }) })))
      .status,
  ).toBe(200);
  const second = charged.replace("evt_1", "evt_2");
  expect(
    (await hook(delivery(second, { "stripe-signature": stripeSignature(second, { secret: old }) }))).status,
  ).toBe(200);
});

function signedByStandard(id: string, body: string): Record<string, string> {
  const timestamp = String(Math.floor(Date.now() / 1000));
  const secret = Buffer.from(standardSecret.slice(6), "base64");
  const mac = createHmac("sha256", secret).update(`${id}.${timestamp}.${body}`).digest("base64");
  return { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": `v1,${mac}` };
}

test("the same id of two providers is two events; of one provider in two bodies it is one", async () => {
  const byStripe = psp(write, { consumer: "both" });
  const byStandard = psp(write, { consumer: "both", verify: standardWebhooks(standardSecret) });
  expect((await byStripe(delivery(charged))).status).toBe(200);
  const response = await byStandard(delivery(charged, signedByStandard("evt_1", charged)));
  expect(await response.json()).toEqual({ outcome: "executed" });
  const other = charged.replace("10.00", "11.00");
  const again = await byStandard(delivery(other, signedByStandard("evt_1", other)));
  expect(await again.json()).toEqual({ outcome: "duplicate" });
});

test("what can't be read is refused by name: method, size, JSON, id", async () => {
  const hook = psp(write, { maxBodyBytes: 200 });
  const answers = await Promise.all([
    hook(new Request("http://shop.test/", { method: "GET" })),
    hook(delivery(JSON.stringify({ id: "x".repeat(200) }))),
    hook(delivery("{")),
    hook(delivery("{}")),
    hook(delivery('{"id":7}')),
  ]);
  expect(await Promise.all(answers.map(async (answer) => [answer.status, await codeOf(answer)]))).toEqual([
    [405, "webhook_method"],
    [413, "webhook_body_too_large"],
    [400, "webhook_body_invalid"],
    [400, "webhook_event_id_missing"],
    [400, "webhook_event_id_missing"],
  ]);
});

test("while the database is away the provider is told to come back, and nothing is charged", async () => {
  await using cluster = await startCluster();
  const own = await cluster.createDatabase();
  const away = own.pool({ connectionTimeoutMillis: 200 });
  await away.query("create table effect (event text)");
  const hook = psp(write, {
    database: fromPg(away),
    giveUpAfterMs: 100,
    retryAfterSeconds: 7,
    deadLetterAfter: 1,
  });
  await cluster.stop("immediate");
  const refused = await hook(delivery(charged));
  expect([refused.status, refused.headers.get("retry-after"), await codeOf(refused)]).toEqual([
    503,
    "7",
    "inbox_unavailable",
  ]);
  await cluster.start();
  const answer = await hook(delivery(charged));
  expect(await answer.json()).toEqual({ outcome: "executed" });
});

test("on Hono and on Express, and a body that a parser has read is told at once", async () => {
  const hook = psp(write, { consumer: "frameworks" });
  const hono = new Hono().post("/webhooks/psp", (c) => hook(c.req.raw));
  expect((await hono.request(delivery(charged))).status).toBe(200);

  const app = express();
  app.post("/bare", (request, response) => hook.node(request, response));
  app.post("/raw", express.raw({ type: "*/*" }), (request, response) => hook.node(request, response));
  app.post("/parsed", express.json(), (request, response) => hook.node(request, response));
  const server = createServer(app).listen(0);
  const { port } = server.address() as AddressInfo;
  const post = (path: string, body: string): Promise<Response> =>
    fetch(`http://127.0.0.1:${port}${path}`, {
      method: "POST",
      body,
      headers: { "content-type": "application/json", "stripe-signature": stripeSignature(body) },
    });
  expect(await (await post("/bare", charged)).json()).toEqual({ outcome: "duplicate" });
  const second = charged.replace("evt_1", "evt_2");
  expect(await (await post("/raw", second)).json()).toEqual({ outcome: "executed" });
  const parsed = await post("/parsed", second);
  expect([parsed.status, await codeOf(parsed)]).toEqual([500, "webhook_body_consumed"]);
  const large = await post("/bare", JSON.stringify({ id: "x".repeat(2_000_000) }));
  expect(large.status).toBe(413);
  server.closeAllConnections();
  server.close();
  const used = delivery(charged);
  await used.text();
  expect(await codeOf(await hook(used))).toBe("webhook_body_consumed");
});
