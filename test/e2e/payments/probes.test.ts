import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../support/index.ts";
import { ask, fault, newShopper } from "./client.ts";
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
    expect((await ask(`${service.url}/ready`)).json).toEqual({
      status: "ready",
      outbox: { oldestUnpublishedMs: 0, unpublished: 0, parkedKeys: 0, oldestSnapshotMs: expect.any(Number) },
    });
  });

  test("tells that events wait for a relay, and isn't ready while they wait longer than is allowed", async () => {
    const strict = await stage.startReplica({ env: { OUTBOX_AGE_LIMIT_MS: "1" } });
    await newShopper(stage, strict.url);
    const unready = await until(
      async () => {
        const answer = await ask(`${strict.url}/ready`);
        return answer.status === 503 ? answer : undefined;
      },
      { what: "a backlog that is noticed" },
    );
    expect(fault(unready)).toBe("503 not_ready");
    expect(unready.json["detail"]).toMatch(/^an event has waited for \d+ ms for a relay, 1 do: /u);
    // Without a limit the backlog is told, and other commands are served.
    const { status, json } = await ask(`${service.url}/ready`);
    expect(status).toBe(200);
    expect(json["outbox"]).toMatchObject({ unpublished: 1 });
    expect((json["outbox"] as { oldestUnpublishedMs: number }).oldestUnpublishedMs).toBeGreaterThan(0);
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
