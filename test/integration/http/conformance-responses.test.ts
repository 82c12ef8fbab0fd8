import { describe, expect, test } from "vitest";

import { answers } from "./scenarios.ts";
import { overFrameworks } from "./suite.ts";

overFrameworks(({ framework, newKey, post, payments, recordOf }) => {
  describe("a response", () => {
    test.each(Object.keys(answers))(
      "%s is replayed with the same status, stored headers and bytes",
      async (name) => {
        const key = newKey();
        const first = await post(name, { key, body: { a: 1 } });
        const replay = await post(name, { key, body: { a: 1 } });
        expect(first.headers["idempotent-replayed"]).toBeUndefined();
        expect(replay.headers["idempotent-replayed"]).toBe("true");
        expect(replay.headers["cache-control"]).toBe("no-store");
        expect(replay.status).toBe(first.status);
        expect(replay.body.equals(first.body)).toBe(true);
        for (const header of ["content-type", "location", "etag", "link", "content-length"]) {
          expect([header, replay.headers[header]]).toEqual([header, first.headers[header]]);
        }
        expect(await payments(key)).toBe(1);
      },
    );

    test("keeps the status and headers that the handler chose", async () => {
      const key = newKey();
      const first = await post("json", { key, body: {} });
      expect(first.status).toBe(201);
      expect(first.headers.location).toBe("/payments/1");
      expect((await post("binary", { key, body: {} })).body).toEqual(
        Buffer.from([0, 1, 2, 0xff, 0xfe, 0x80, 0x0d, 0x0a, 0]),
      );
      expect((await post("multi-value", { key, body: {} })).headers["link"]).toContain(
        "</a>; rel=prev, </b>; rel=next",
      );
      expect((await post("streamed", { key, body: {} })).text).toMatch(/^first .* last$/);
    });

    test("carries what belongs to one exchange anew, and none of it is stored", async () => {
      const key = newKey();
      const first = await post("multi-value", { key, body: {} });
      const replay = await post("multi-value", { key, body: {} });
      expect(first.headers["set-cookie"]).toEqual(expect.arrayContaining(["a=1", "b=2"]));
      expect(replay.headers["set-cookie"]).not.toContain("a=1");
      expect(replay.headers["set-cookie"]).toHaveLength(1);
      expect(replay.headers["x-request-id"]).not.toBe(first.headers["x-request-id"]);
      expect(replay.headers["access-control-allow-origin"]).toBe("https://shop.example");
      expect(replay.headers.date).toBeDefined();
      const names = (await recordOf(key))?.["headers"] as [string, string][];
      expect(["content-type", "etag", "link"]).toEqual(expect.arrayContaining(names.map(([name]) => name)));
    });

    test("stores the headers that an operation adds, and no others", async () => {
      const key = newKey();
      const first = await post("secret", { key, body: {} });
      const replay = await post("secret", { key, body: {} });
      expect(first.headers["x-other"]).toBe("1");
      expect(first.headers["cache-control"]).toContain("max-age=60");
      expect(replay.headers["x-receipt"]).toBe("42");
      expect(replay.headers["x-other"]).toBeUndefined();
      expect(replay.headers["cache-control"]).toBe("no-store");
    });

    test.each([
      ["gzip", undefined],
      [undefined, "gzip"],
    ])("first taken with coding %s is replayed with coding %s", async (first, second) => {
      const headers = (coding: string | undefined): Record<string, string> =>
        coding === undefined ? {} : { "accept-encoding": coding };
      for (const name of ["long", "streamed"]) {
        const key = newKey();
        const one = await post(name, { key, body: {}, headers: headers(first) });
        const two = await post(name, { key, body: {}, headers: headers(second) });
        expect(two.body.equals(one.body)).toBe(true);
        expect(two.headers["idempotent-replayed"]).toBe("true");
        expect((await recordOf(key))?.["body"]).toEqual(one.body);
        if (first === undefined) expect(one.headers["content-encoding"]).toBeUndefined();
        if (second === undefined) expect(two.headers["content-encoding"]).toBeUndefined();
        const coded = [one, two].some((each) => each.headers["content-encoding"] === "gzip");
        expect(coded).toBe(!["fetch-style", "node:http"].includes(framework.name));
      }
    });
  });
});
