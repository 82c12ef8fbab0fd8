import fc from "fast-check";
import type pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";

import { controlsTransaction } from "../../../src/postgres/transaction-control.ts";
import { paymentsDatabase } from "./support/payments.ts";
import type { Payments } from "./support/payments.ts";

let payments: Payments;
let client: pg.PoolClient;
beforeAll(async () => {
  payments = await paymentsDatabase();
  client = await payments.admin.connect();
  client.on("notice", () => {});
});
afterAll(async () => {
  client.release(true);
  await payments[Symbol.asyncDispose]();
});

async function transactionId(): Promise<unknown> {
  return (await client.query("select pg_current_xact_id()::text as id")).rows[0];
}

/** Whether PostgreSQL itself, given this text in a transaction, ended it. A text that it cannot parse does nothing. */
async function isEndedBy(given: string): Promise<boolean> {
  await client.query("begin");
  const begun = await transactionId();
  try {
    await client.query(given);
  } catch {
    // A statement before it may have been the one that ended the transaction.
  }
  await client.query("").catch(() => undefined); // an error is told before the status that follows it
  const status = client.getTransactionStatus();
  const ended =
    status === "I" || (status === "T" && JSON.stringify(await transactionId()) !== JSON.stringify(begun));
  await client.query("rollback");
  return ended;
}

/** What opens and closes strings, names, bodies and comments. */
const pieces =
  "' '' \\ \\' \" \"\" /* */ -- \n \r $$ $a$ $b$ $ a$b$ $1 e E' a 1 - ; ;commit; commit ::text , e'a'\n'\\''".split(
    / +/,
  );
const piece = fc.constantFrom(...pieces, " ", "select 1", "as x");
const soup = fc.array(piece, { maxLength: 6 }).map((some) => some.join(""));

/** Something opened and closed with soup in between, which may close it early or open it anew; then perhaps control. */
const part = fc
  .tuple(
    fc.constantFrom(
      ...([
        ["select '", "'"],
        ["select e'", "'"],
        ['select 1 as "', '"'],
        ["/*", "*/"],
        ["--", "\n"],
      ] as const),
      ...([
        ["select $$", "$$"],
        ["select $a$", "$a$"],
        ["select 1 as a$b", ""],
        ["select 1 ", ""],
      ] as const),
    ),
    soup,
    fc.constantFrom("commit", "select 1", "end", "rollback work", "savepoint x; rollback to x", "'"),
  )
  .map(([[opening, closing], inside, after]) => `${opening}${inside}${closing};${after}`);
const text = fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => parts.join(";"));

test("no text that the guard lets through makes PostgreSQL end the transaction", async () => {
  let ended = 0;
  await fc.assert(
    fc.asyncProperty(text, async (given) => {
      if (!(await isEndedBy(given))) return;
      ended += 1;
      expect(controlsTransaction(given)).toBe(true);
    }),
    { numRuns: 800 },
  );
  expect(ended).toBeGreaterThan(50);
});
