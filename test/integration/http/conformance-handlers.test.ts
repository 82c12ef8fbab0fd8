import { describe, expect, test } from "vitest";

import { overFrameworks } from "./suite.ts";

overFrameworks(({ framework, on, events, newKey, post, payments, recordOf }) => {
  describe("a handler", () => {
    test("that sends a 4xx keeps its writes", async () => {
      const key = newKey();
      expect((await post("bad-request", { key, body: {} })).status).toBe(400);
      expect(await payments(key)).toBe(1);
    });

    test("that throws a definitive error is refused: rolled back, and its answer stored", async (context) => {
      context.skip(
        !framework.rendersThrownErrors,
        "rendersThrownErrors: what is rendered outside can't be stored",
      );
      const key = newKey();
      const first = await post("refuses", { key, body: {} });
      const replay = await post("refuses", { key, body: {} });
      expect(first.status).toBe(422);
      expect(first.json()["error"]).toMatch(/^refused /);
      expect(replay.text).toBe(first.text);
      expect(replay.status).toBe(422);
      expect(replay.headers["idempotent-replayed"]).toBe("true");
      expect(await payments(key)).toBe(0);
      expect((await recordOf(key))?.["disposition"]).toBe("refuse");
    });

    test.each([500, 503, 401, 403, 407, 408, 425, 429])(
      "that throws %i is discarded and may be tried again",
      async (status) => {
        const key = newKey(String(status));
        const runs = on.runs.get("throws") ?? 0;
        for (const _try of [1, 2]) {
          const answer = await post("throws", { key, body: {} });
          expect(answer.status).toBe(status);
          expect(answer.json()["error"]).toBe("thrown");
        }
        expect(on.runs.get("throws")).toBe(runs + 2);
        expect(await payments(key)).toBe(0);
        expect(await recordOf(key)).toBeUndefined();
      },
    );

    test("that throws something else than an Error is discarded", async () => {
      const key = newKey();
      for (const _try of [1, 2]) {
        const answer = await post("throws-text", { key, body: {} });
        expect(answer.status).toBe(500);
      }
      expect(await payments(key)).toBe(0);
    });

    test("that marks its answer as not final may be tried again", async () => {
      const key = newKey();
      const runs = on.runs.get("not-final") ?? 0;
      for (const _try of [1, 2]) {
        expect((await post("not-final", { key, body: {} })).json()["error"]).toBe("wrong code");
      }
      expect(on.runs.get("not-final")).toBe(runs + 2);
      expect(await payments(key)).toBe(0);
      expect(await recordOf(key)).toBeUndefined();
    });

    test("that sends a 5xx is discarded", async () => {
      const key = newKey();
      expect((await post("fails", { key, body: {} })).status).toBe(502);
      expect(await payments(key)).toBe(0);
      expect(await recordOf(key)).toBeUndefined();
    });

    test("whose transaction can't be serialized runs again on fresh input and a fresh response", async (context) => {
      context.skip(!framework.runsAgain, "next() can be called once");
      on.bodies.length = 0;
      const key = newKey();
      const answer = await post("conflicts", { key, body: { amounts: [1] } });
      expect(answer.status).toBe(201);
      expect(answer.json()).toEqual({ amounts: [1, 99] });
      expect(answer.headers["x-run"]).toBe("2");
      expect(on.bodies).toEqual(['{"amounts":[1]}', '{"amounts":[1]}']);
      expect(await payments(key)).toBe(1);
      expect((await post("conflicts", { key, body: { amounts: [1] } })).headers["idempotent-replayed"]).toBe(
        "true",
      );
    });

    test("that can't run again after a serialization failure is told to come back with the same key", async (context) => {
      context.skip(framework.runsAgain, "it can run again");
      on.bodies.length = 0;
      const key = newKey();
      const answer = await post("conflicts", { key, body: { amounts: [1] } });
      expect(answer.status).toBe(503);
      expect(answer.headers["retry-after"]).toBe("1");
      expect(answer.json()).toMatchObject({ code: "idempotency_unavailable", retry: "same-key" });
      expect((await post("conflicts", { key, body: { amounts: [1] } })).status).toBe(201);
      expect(await payments(key)).toBe(1);
    });

    test("whose COMMIT fails answers with the error and none of its own headers", async () => {
      const key = newKey();
      const answer = await post("fails-at-commit", { key, body: {} });
      expect(answer.status).toBe(409);
      expect(answer.json()["code"]).toBe("23505");
      expect(answer.headers["x-handler"]).toBeUndefined();
      expect(answer.headers.location).toBeUndefined();
      expect(answer.headers["access-control-allow-origin"]).toBe("https://shop.example");
      const stored = framework.rendersCommitErrors ? "refuse" : undefined;
      expect((await recordOf(key))?.["disposition"]).toBe(stored);
      expect((await post("fails-at-commit", { key, body: {} })).status).toBe(409);
    });

    test("whose response is too large is refused loudly, and nothing is committed", async () => {
      const key = newKey();
      for (const _try of [1, 2]) {
        const answer = await post("endless", { key, body: {} });
        expect(answer.status).toBe(500);
        expect(answer.json()).toMatchObject({ code: "response_too_large", retry: "stop" });
      }
      expect(await payments(key)).toBe(0);
      expect(await recordOf(key)).toBeUndefined();
      expect(events.at(-1)?.error).toMatchObject({ code: "response_too_large" });
    });

    test("whose stream breaks is discarded", async () => {
      const key = newKey();
      const answer = await post("broken-stream", { key, body: {} });
      expect(answer.status).toBe(500);
      expect(answer.json()["error"]).toMatch(/^the source broke|destroyed before it was complete/);
      expect(await payments(key)).toBe(0);
    });

    test("that takes too long is rolled back, and what it does later harms nobody", async () => {
      const key = newKey();
      const answer = await post("late", { key, body: {} });
      expect(answer.status).toBe(503);
      expect(answer.headers["retry-after"]).toBe("1");
      expect(answer.json()).toMatchObject({ code: "handler_timed_out", retry: "same-key" });
      on.barrier.release();
      await on.late;
      expect(await payments(key)).toBe(0);
      expect((await post("json", { key: newKey(), body: {} })).status).toBe(201);
    });
  });
});
