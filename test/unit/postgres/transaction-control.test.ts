import fc from "fast-check";
import { describe, expect, test } from "vitest";

import { controlsTransaction } from "../../../src/postgres/transaction-control.ts";

const control = [
  "commit",
  "COMMIT",
  "Commit Work",
  "commit and chain",
  "commit prepared 'a'",
  "end",
  "end transaction",
  "abort",
  "begin",
  "begin isolation level serializable",
  "start transaction",
  "start\n\ttransaction read only",
  "rollback",
  "rollback work",
  "rollback transaction and no chain",
  "rollback prepared 'a'",
  "prepare transaction 'a'",
];

const harmless = [
  "",
  ";",
  "select 1",
  "savepoint a",
  "release savepoint a",
  "rollback to a",
  "rollback to savepoint a",
  "rollback work to a",
  "rollback transaction to savepoint a",
  "prepare p as select 1",
  "insert into begin_log values (1)",
  'select commit, "end" from "begin"',
  "select 'a' as commit",
  "update t set commit = 1",
  "(select 1)",
  "select case when true then 1 end",
  "create function f() returns int language sql begin atomic select 1; select case when true then 2 end; end",
  "do $$ begin raise notice 'x'; end $$",
];

describe("transaction control", () => {
  test.each(control)("is %j", (text) => {
    expect(controlsTransaction(text)).toBe(true);
  });

  test.each(harmless)("is not %j", (text) => {
    expect(controlsTransaction(text)).toBe(false);
  });

  test.each([
    ["after another statement", "select 1; commit"],
    ["after empty statements", ";;; commit"],
    ["behind a line comment", "-- a\ncommit"],
    ["behind a line comment that a carriage return ends", "-- a\rcommit"],
    ["behind a comment", "/* a */commit"],
    ["behind a comment within a comment", "/* /* a */ */ commit"],
    ["with a comment inside", "start/**/transaction"],
    ["after a text that holds a quote", "select 'it''s'; commit"],
    ["after a text that ends with a backslash", "select 'c:\\'; commit"],
    ["after an escape string that holds a quote", "select e'\\''; commit"],
    ["after an escape string that goes on on the next line", "select e'a'\n'\\''; commit; --'"],
    ["after an escape string that goes on behind a comment", "select e'a' -- b\n'\\''; commit; --'"],
    ["after a name that holds a quote", 'select 1 as "a""b"; commit'],
    ["after a dollar-quoted text", "select $$ ; $$; commit"],
    ["after a dollar-quoted text with another tag inside", "select $a$ $b$ $a$; commit"],
    ["after a name that holds dollar signs", "select 1 as a$b$; commit; select 1 as c$b$"],
    ["after parameters", "select $1$2; commit"],
    ["after the body of a function", "create function f() returns int begin atomic select 1; end; commit"],
    [
      "after a body with a member called case",
      "create function f() returns int begin atomic select 1 as case; end; commit",
    ],
    ["as the end of no function", "select 1 as begin, 2 as atomic; end"],
    ["behind a byte that is blank to PostgreSQL", "\f\v commit"],
  ])("is found %s", (_, text) => {
    expect(controlsTransaction(text)).toBe(true);
  });

  test.each([
    ["in a line comment", "select 1 -- ; commit"],
    ["in a comment", "select 1 /* ; commit; */"],
    ["in a comment within a comment", "select 1 /* /* */ ; commit; */"],
    ["in a text", "select '; commit; '"],
    ["in a text with doubled quotes", "select '''; commit; '''"],
    ["in an escape string", "select e'\\'; commit; --'"],
    ["in a text behind a word that ends with e", "select type'; commit; '"],
    ["in a quoted name", 'select 1 as "; commit; "'],
    ["in a dollar-quoted text", "select $$; commit; $$"],
    ["in a dollar-quoted text with a tag", "select $ä_1$; $$ commit; $ä_1$"],
    ["in a text that never ends", "select '; commit"],
    ["in a comment that never ends", "select 1 /* ; commit"],
    ["in a dollar-quoted text that never ends", "select $a$; commit"],
  ])("is not what stands %s", (_, text) => {
    expect(controlsTransaction(text)).toBe(false);
  });

  const opaque = fc.oneof(
    fc.string().map((text) => `'${text.replaceAll("'", "''")}'`),
    fc.string().map((text) => `e'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`),
    fc.string().map((text) => `"${text.replaceAll('"', '""')}"`),
    fc.string().map((text) => `/*${text.replaceAll(/[*/]/g, " ")}/*;commit*/*/`),
    fc.string().map((text) => `--${text.replaceAll(/[\n\r]/g, " ")}\n`),
    fc.string().map((text) => `$tag$${text.replaceAll("$", " ")};commit;$tag$`),
    fc.constantFrom("a$b$c", "$1", "1.5", "x'00'", "(", ")", "::", "case", "end_", "e", " "),
  );

  test("is found or not, whatever stands between", () => {
    const parts = fc.array(opaque, { maxLength: 6 }).map((all) => all.join(","));
    fc.assert(
      fc.property(
        parts,
        parts,
        fc.constantFrom(...control),
        fc.constantFrom(...harmless),
        (before, after, bad, good) => {
          expect(controlsTransaction(`select ${before}; ${bad}; select ${after}`)).toBe(true);
          expect(controlsTransaction(`select ${before}; ${good}; select ${after}`)).toBe(false);
        },
      ),
      { numRuns: 1000 },
    );
  });

  test("takes a megabyte of quotes in time that grows with its length", () => {
    const started = performance.now();
    expect(controlsTransaction(`${"'".repeat(2_000_000)}; commit`)).toBe(true);
    expect(controlsTransaction(`select ${"/*".repeat(500_000)}`)).toBe(false);
    expect(controlsTransaction(`select ${"$a".repeat(500_000)}`)).toBe(false);
    expect(controlsTransaction(`select e'a' ${"-".repeat(500_000)}`)).toBe(false);
    expect(controlsTransaction(`select e'a' ${"--\n ".repeat(200_000)}; commit`)).toBe(true);
    expect(controlsTransaction(`select e'${"''".repeat(500_000)}; commit`)).toBe(false);
    expect(performance.now() - started).toBeLessThan(8000);
  });
});
