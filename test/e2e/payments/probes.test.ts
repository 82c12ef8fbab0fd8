import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ask, fault } from "./client.ts";
import { openStage } from "./stage.ts";
import type { Replica, Stage } from "./stage.ts";

let stage: Stage;
let service: Replica;

beforeAll(async () => {
  stage = await openStage();
  service = await stage.startReplica();
});
afterAll(() => stage.close());

describe("what anyone may ask", () => {
  test("answers health and readiness", async () => {
    expect((await ask(`${service.url}/health`)).json).toMatchObject({ status: "ok" });
    expect((await ask(`${service.url}/ready`)).json).toEqual({ status: "ready" });
  });

  test("describes every route, and only those there are", async () => {
    const { json } = await ask(`${service.url}/openapi.json`);
    expect(json["openapi"]).toBe("3.1.0");
    const paths = json["paths"] as Record<string, Record<string, { parameters?: { name: string }[] }>>;
    const described = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => [method.toUpperCase(), path] as const),
    );
    expect(described).toHaveLength(6);
    for (const [method, path] of described) {
      const answer = await ask(service.url + path.replace("{id}", "1"), { method });
      expect([200, 401], `${method} ${path}`).toContain(answer.status);
    }
    expect(paths["/payments"]?.["post"]?.parameters).toContainEqual(
      expect.objectContaining({ name: "Idempotency-Key" }),
    );
  });

  test("answers an unknown route with problem details", async () => {
    expect(fault(await ask(`${service.url}/nothing`))).toBe("404 route_not_found");
  });
});
