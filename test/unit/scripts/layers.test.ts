import { expect, test } from "vitest";

import { copyScript } from "./run-copied.ts";

const fine: [string, string][] = [
  ["src/core/run-once.ts", 'import { poll } from "../internal/poll.ts";'],
  ["src/postgres/database.ts", 'import type { Store } from "../core/ports.ts";'],
  [
    "src/fastify.ts",
    'import { problem } from "./http/problem.ts";\nimport type { FastifyReply } from "fastify";',
  ],
  ["src/cli/main.ts", 'import { migrate } from "../index.ts";\nimport { fromPg } from "../pg.ts";'],
  ["src/core/fingerprint.test.ts", 'import { clock } from "../testing/clock.ts";'],
  ["services/payments/src/core/order.ts", 'import { add } from "./money.ts";'],
  ["services/payments/src/main.ts", 'import { migrate } from "idemkit";'],
];

test.each(fine)("%s may have: %s", (path, text) => {
  using checkout = copyScript("layers.mjs");
  checkout.write(path, text);
  expect(checkout.run()).toEqual({ code: 0, complaint: "" });
});

const faulty: [string, string, string][] = [
  ["src/internal/poll.ts", 'import { runOnce } from "../core/run-once.ts";', "internal must not import core"],
  ["src/core/deep/a.ts", 'export { problem } from "../../http/problem.ts";', "core must not import http"],
  ["src/http/a.ts", 'const m = await import("../outbox/enqueue.ts");', "http must not import outbox"],
  ["src/cli/main.ts", 'import {\n  next,\n} from "../core/lifecycle.ts";', "cli must not import core"],
  ["src/core/a.ts", 'import "../testing/index.ts";', "core must not import testing"],
  ["src/newcomer/a.ts", 'import { a } from "../core/a.ts";', "newcomer is not in the table"],
  ["src/core/a.ts", 'import { runOnce } from "idemkit";', "by its own name"],
  [
    "services/payments/src/core/a.ts",
    'import { pool } from "../adapters/out/postgres/pool.ts";',
    "no adapter",
  ],
  ["services/payments/src/core/a.ts", 'import type { Pool } from "pg";', "does I/O"],
  ["services/payments/src/main.ts", 'import { runOnce } from "../../../src/index.ts";', "by its name"],
];

test.each(faulty)("%s must not have: %s", (path, text, complaint) => {
  using checkout = copyScript("layers.mjs");
  checkout.write(path, text);
  expect(checkout.run()).toEqual({ code: 1, complaint: expect.stringContaining(complaint) });
});
