import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ask, newShopper, orderBody } from "./client.ts";
import { openStage, unique } from "./stage.ts";
import type { Replica, Stage } from "./stage.ts";

let stage: Stage;
let service: Replica;

beforeAll(async () => {
  stage = await openStage();
  service = await stage.startReplica();
});
afterAll(() => stage.close());

describe("authentication", () => {
  const routes: readonly [string, string, unknown][] = [
    ["POST", "/orders", orderBody],
    ["POST", "/payments", {}],
    ["GET", "/orders/00000000-0000-4000-8000-000000000000", undefined],
  ];

  test.each(routes)("is demanded before anything else of %s %s", async (method, path, body) => {
    for (const headers of [{}, { authorization: "Bearer a.b.c" }]) {
      const answer = await ask(`${service.url}${path}`, {
        method,
        headers,
        ...(body === undefined ? {} : { body }),
      });
      expect(answer.status).toBe(401);
      expect(answer.headers.get("www-authenticate")).toContain("Bearer");
      expect(answer.headers.get("content-type")).toContain("application/problem+json");
    }
  });

  test.each(routes)("goes with a role for %s %s", async (method, path, body) => {
    const token = await stage.token(unique("nobody"), []);
    const answer = await ask(`${service.url}${path}`, {
      method,
      token,
      ...(body === undefined ? {} : { body }),
    });
    expect(answer.status).toBe(403);
    expect(answer.json["code"]).toBe("role_missing");
  });

  test("lets an admin, who is no customer, neither order nor pay", async () => {
    const token = await stage.token("root", ["admin"]);
    const answer = await ask(`${service.url}/orders`, { token, key: unique("key"), body: orderBody });
    expect(answer.status).toBe(403);
  });
});

describe("a replay", () => {
  test("is not served without a token, nor to a caller who has lost the role", async () => {
    const { sub, token, charge } = await newShopper(stage, service.url);
    const key = unique("key");
    const send = (headers: Record<string, string>) =>
      ask(`${service.url}/payments`, { key, body: charge, headers });
    expect((await send({ authorization: `Bearer ${token}` })).status).toBe(201);
    expect((await send({})).status).toBe(401);
    expect((await send({ authorization: `Bearer ${await stage.token(sub, [])}` })).status).toBe(403);
    expect((await send({ authorization: `Bearer ${token}` })).headers.get("idempotent-replayed")).toBe(
      "true",
    );
  });

  test("is not served to a caller who no longer owns the order", async () => {
    const { token, charge } = await newShopper(stage, service.url);
    const call = { token, key: unique("key"), body: charge };
    expect((await ask(`${service.url}/payments`, call)).status).toBe(201);
    await stage.pool.query({
      text: "update public.orders set customer_id = 'someone-else' where id = $1",
      values: [charge.orderId],
    });
    const answer = await ask(`${service.url}/payments`, call);
    expect(answer.status).toBe(403);
    expect(answer.json["code"]).toBe("order_foreign");
  });

  test("is another customer's new call where they send the same key and body", async () => {
    const alice = await newShopper(stage, service.url);
    const bob = await newShopper(stage, service.url);
    const call = { key: unique("key"), body: alice.charge };
    expect((await ask(`${service.url}/payments`, { ...call, token: alice.token })).status).toBe(201);
    expect((await ask(`${service.url}/payments`, { ...call, token: bob.token })).status).toBe(403);
  });
});
