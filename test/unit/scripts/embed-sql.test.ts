import { expect, test } from "vitest";

import { copyScript } from "./run-copied.ts";
import type { Copied } from "./run-copied.ts";

interface Embedded {
  statements: Record<string, string>;
  migrations: { number: number; name: string; breaking: boolean; sql: string }[];
}

const output = "src/postgres/sql.generated.ts";

/** The generated module has no types but the two annotations: without them it is JavaScript. */
async function load(checkout: Copied): Promise<Embedded> {
  const script = checkout
    .read(output)
    .replaceAll(/: \{[^=]*\} = /g, " = ")
    .replaceAll(/: readonly [^=]*= /g, " = ");
  return (await import(`data:text/javascript,${encodeURIComponent(script)}`)) as Embedded;
}

test("a statement keeps every character but its leading comment", async () => {
  using checkout = copyScript("embed-sql.mjs");
  const sql = `select '\`', '\${1}', '\\\\d' -- the end\nfrom :"schema".t`;
  checkout.write("src/postgres/statements/claim.sql", `-- why\n-- this order of locks\n${sql}\n`);
  expect(checkout.run()).toEqual({ code: 0, complaint: "" });
  expect((await load(checkout)).statements).toEqual({ claim: sql });
});

test("migrations come in order, and a breaking one is marked by its first line", async () => {
  using checkout = copyScript("embed-sql.mjs");
  checkout.write("src/postgres/migrations/0002-drop.sql", "-- breaking\ndrop table a;\n");
  checkout.write("src/postgres/migrations/0001-create.sql", "-- not breaking anything\ncreate table a ();\n");
  checkout.run();
  expect((await load(checkout)).migrations).toEqual([
    { number: 1, name: "create", breaking: false, sql: "-- not breaking anything\ncreate table a ();" },
    { number: 2, name: "drop", breaking: true, sql: "-- breaking\ndrop table a;" },
  ]);
});

test("a gap in the numbers is refused", () => {
  using checkout = copyScript("embed-sql.mjs");
  checkout.write("src/postgres/migrations/0002-drop.sql", "drop table a;");
  expect(checkout.run()).toMatchObject({ code: 1, complaint: expect.stringContaining("expected number 1") });
});

test("a check fails while the generated file is stale, and leaves it alone", () => {
  using checkout = copyScript("embed-sql.mjs");
  checkout.write("src/postgres/statements/claim.sql", "select 1");
  checkout.run();
  expect(checkout.run("--check").code).toBe(0);
  const before = checkout.read(output);
  checkout.write("src/postgres/statements/claim.sql", "select 2");
  expect(checkout.run("--check")).toMatchObject({ code: 1, complaint: expect.stringContaining("stale") });
  expect(checkout.read(output)).toBe(before);
});
