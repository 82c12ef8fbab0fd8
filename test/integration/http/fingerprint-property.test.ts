import { isDeepStrictEqual } from "node:util";

import fc from "fast-check";
import { describe, expect, test } from "vitest";

import { createService } from "./service.ts";
import { frameworks } from "./apps/index.ts";
import { call } from "./client.ts";
import { pairs } from "./spelling.ts";
import { newKey } from "./suite.ts";

/** −0 and 0 are one number in JSON. */
function plain(value: unknown): unknown {
  if (Object.is(value, -0)) return 0;
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  return new Map(Object.entries(value).map(([name, member]) => [name, plain(member)]));
}

/** Whether a request has no body; the parsers of Express make `{}` of some such, so that the headers tell. */
function isAbsent(body: string | undefined): boolean {
  return body === undefined || body === "";
}

describe.each(frameworks)("$name", (framework) => {
  test(
    "takes two commands for one if, and only if, its handler gets equal values",
    { timeout: 60_000 },
    async () => {
      await using service = await createService();
      const seen = new Map<string, unknown>();
      const app = await framework.start(
        {
          echo: {
            script: (io, { key }) => {
              seen.set(key ?? "", plain(io.body));
              return io.json(201, {});
            },
          },
        },
        { database: service.database },
      );
      const post = async (
        key: string,
        body: string | undefined,
      ): Promise<{ status: number; replayed: boolean }> => {
        const { status, headers } = await call(`${app.url}/echo`, { key, body });
        return { status, replayed: headers["idempotent-replayed"] === "true" };
      };
      const compared = { equal: 0, other: 0, refused: 0 };
      await fc.assert(
        fc.asyncProperty(pairs, async ([one, two]) => {
          const key = newKey("pair");
          const probe = newKey("probe");
          const first = await post(key, one);
          const alone = await post(probe, two);
          const second = await post(key, two);
          if (first.status !== 201 || alone.status !== 201) {
            compared.refused += 1;
            const refused = [first, alone].filter(({ status }) => status !== 201);
            expect(refused.every(({ status }) => status >= 400 && status < 500)).toBe(true);
            return;
          }
          const absent = [one, two].filter(isAbsent).length;
          const equal = absent === 2 || (absent === 0 && isDeepStrictEqual(seen.get(key), seen.get(probe)));
          compared[equal ? "equal" : "other"] += 1;
          expect(second).toEqual(equal ? { status: 201, replayed: true } : { status: 409, replayed: false });
        }),
        { numRuns: 100 },
      );
      expect(compared.equal).toBeGreaterThan(10);
      expect(compared.other).toBeGreaterThan(10);
      expect(compared.refused).toBeGreaterThan(5);
      await app.close();
    },
  );
});
