import type { Codec, IdemkitError } from "idemkit";
import { refuse, runOnce, valueOf } from "idemkit";
import { fromPg } from "idemkit/pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { charge, chargeOf, paymentsDatabase } from "../postgres/support/payments.ts";
import type { Payments } from "../postgres/support/payments.ts";
import { stepwise } from "../postgres/support/steps.ts";

let payments: Payments;
beforeAll(async () => {
  payments = await paymentsDatabase();
});
afterAll(() => payments[Symbol.asyncDispose]());

let keys = 0;
function newKey(): string {
  keys += 1;
  return `outcome-${keys}`;
}

/** The row as it lies in the table: any write to it would change its place or its transaction. */
async function rowOf(key: string): Promise<unknown> {
  const { rows } = await payments.admin.query(
    "select ctid, xmin, xmax, r.* from idemkit.idempotency_record r where key = $1",
    [key],
  );
  return rows;
}

describe("a value", () => {
  test.each([
    [undefined],
    [null],
    [0],
    [-0],
    [""],
    ["naïve \u{1F4B6} \ud800"],
    [[]],
    [{}],
    [[null, [[]], { a: { b: [1.5e-7] } }]],
    ["\0"],
    [{ toJSON: () => ({ n: 1 }) }],
    [new Date(0)],
  ])("%j is the same for the first caller and for every other", async (value) => {
    const key = newKey();
    const first = await runOnce(payments.process(), chargeOf(key), () => value);
    const again = await runOnce(payments.process(), chargeOf(key), () => "ran again");
    expect(again).toStrictEqual({ ...first, outcome: "replayed" });
  });

  test("with a codec is stored as its bytes", async () => {
    const codec: Codec<bigint, bigint> = {
      encode: (value) => Buffer.from(value.toString(16)),
      decode: (bytes) => BigInt(`0x${Buffer.from(bytes).toString()}`),
    };
    const key = newKey();
    const call = { ...chargeOf(key), codec };
    expect(await runOnce(payments.process(), call, () => 2n ** 70n)).toMatchObject({ value: 2n ** 70n });
    expect(await runOnce(payments.process(), call, () => 1n)).toMatchObject({
      outcome: "replayed",
      value: 2n ** 70n,
    });
    const { rows } = await payments.admin.query(
      "select body from idemkit.idempotency_record where key = $1",
      [key],
    );
    expect(rows).toEqual([{ body: Buffer.from("400000000000000000") }]);
  });

  const loop: { self?: unknown } = {};
  loop.self = loop;
  test.each([
    ["a bigint", 1n],
    ["a loop", loop],
    ["a function", () => 1],
    ["a symbol", Symbol("s")],
  ])("that JSON cannot hold, %s, leaves nothing behind", async (_, value) => {
    const key = newKey();
    const run = runOnce(payments.process(), chargeOf(key), async (once): Promise<unknown> => {
      await charge(once);
      return value;
    });
    await expect(run).rejects.toMatchObject({ code: "value_not_json" });
    expect([await payments.payments(key), await rowOf(key)]).toEqual([[], []]);
  });
});

describe("what is answered without the handler never touches a record", () => {
  test("a replay, a mismatch and a refused call leave the row as it lies", async () => {
    const key = newKey();
    await runOnce(payments.process(), chargeOf(key), charge);
    const row = await rowOf(key);
    for (const isolation of ["read committed", "repeatable read", "serializable"] as const) {
      const database = payments.process();
      expect(await runOnce(database, chargeOf(key, { isolation }), charge)).toMatchObject({
        outcome: "replayed",
      });
      expect(await runOnce(database, chargeOf(key, { isolation, command: 1 }), charge)).toEqual({
        outcome: "mismatch",
      });
    }
    const deep = JSON.parse(`${"[".repeat(200)}${"]".repeat(200)}`) as unknown;
    await expect(runOnce(payments.process(), chargeOf(key, { command: deep }), charge)).rejects.toThrow();
    expect(await rowOf(key)).toEqual(row);
  });

  test("an answer in progress leaves no row", async () => {
    const key = newKey();
    const steps = stepwise(payments.process(), "before-finish");
    const first = runOnce(steps.database, chargeOf(key), charge);
    await steps.reached("before-finish");
    expect(await runOnce(payments.process(), chargeOf(key), charge)).toEqual({ outcome: "in-progress" });
    expect(await rowOf(key)).toEqual([]);
    steps.go("before-finish");
    await first;
  });
});

test("a handler that changes its command changes neither its key nor what a repeat is compared with", async () => {
  const key = newKey();
  const command = { amount: 10, lines: [{ sku: "a" }] };
  const call = { ...chargeOf(key), command };
  const first = await runOnce(payments.process(), call, (once) => {
    command.amount = 99;
    command.lines.push({ sku: "b" });
    Object.assign(call, { key: "another", scope: "another" });
    Object.assign(once, { key: "another" });
    return charge({ ...once, key });
  });
  expect(first).toMatchObject({ outcome: "executed" });
  const same = chargeOf(key, { command: { lines: [{ sku: "a" }], amount: 10 } });
  expect(await runOnce(payments.process(), same, charge)).toMatchObject({ outcome: "replayed" });
  expect(await runOnce(payments.process(), chargeOf(key, { command }), charge)).toEqual({
    outcome: "mismatch",
  });
});

test("a record of a newer idemkit's fingerprint is neither replayed nor called a mismatch", async () => {
  const key = newKey();
  await runOnce(payments.process(), chargeOf(key), charge);
  await payments.admin.query(
    "update idemkit.idempotency_record set fingerprint = '\\x02' || substr(fingerprint, 2) where key = $1",
    [key],
  );
  await expect(runOnce(payments.process(), chargeOf(key), charge)).rejects.toMatchObject({
    code: "fingerprint_version_unknown",
    retryable: true,
  });
});

describe("a call that is wrong is refused before anything is asked of the database", () => {
  const unreachable = fromPg({
    connect: () => Promise.reject(new Error("was asked")),
    options: { connectionTimeoutMillis: 1 },
  });
  test.each([
    ["scope_missing", { scope: "" }],
    ["scope_missing", { scope: "  " }],
    ["scope_missing", { scope: undefined }],
    ["scope_missing", { scope: "a\0b" }],
    ["scope_missing", { scope: "\ud800" }],
    ["scope_missing", { scope: "x".repeat(256) }],
    ["idempotency_key_missing", { key: undefined }],
    ["idempotency_key_malformed", { key: "" }],
    ["idempotency_key_malformed", { key: "x".repeat(256) }],
    ["idempotency_key_malformed", { key: "schlüssel" }],
    ["idempotency_key_malformed", { key: "a\nb" }],
    ["option_invalid", { operation: "Charge!" }],
    ["option_invalid", { retentionhours: 48 }],
    ["option_invalid", { command: undefined }],
    ["option_invalid", { isolation: "read uncommitted" }],
    ["option_invalid", { whileRunning: { waitMs: -1 } }],
    ["option_invalid", { whileRunning: { maxWait: 1 } }],
    ["option_invalid", { handlerTimeoutMs: 1.5 }],
    ["option_invalid", { idleTimeoutMs: 1 }],
    ["option_invalid", { retentionHours: Number.NaN }],
    ["option_invalid", { retentionHours: 1e9, allowUnsafeRetention: true }],
    ["retention_out_of_range", { retentionHours: 96 }],
    ["command_number_unsafe", { command: { amount: 2 ** 53 } }],
    ["command_not_json", { command: { amount: 1n } }],
  ])("%s for %o", async (code, wrong) => {
    const call = { ...chargeOf("wrong"), ...wrong } as ReturnType<typeof chargeOf>;
    await expect(runOnce(unreachable, call, () => 1)).rejects.toMatchObject({ code });
  });

  test("the nearest name of an option is told", async () => {
    const call = { ...chargeOf("wrong"), retentionHour: 48 };
    await expect(runOnce(unreachable, call, () => 1)).rejects.toThrow(/did you mean retentionHours\?/);
  });
});

test("valueOf gives the value, or throws the catalogue's error", async () => {
  const key = newKey();
  expect(valueOf(await runOnce(payments.process(), chargeOf(key), () => 7))).toBe(7);
  expect(valueOf(await runOnce(payments.process(), chargeOf(key), () => 8))).toBe(7);
  const mismatch = await runOnce(payments.process(), chargeOf(key, { command: 2 }), () => 9);
  expect(() => valueOf(mismatch)).toThrow(
    expect.objectContaining({ code: "idempotency_key_reused" }) as Error,
  );
  const refused = await runOnce(payments.process(), chargeOf(newKey()), () => {
    throw refuse({ reason: "closed" });
  });
  const error = (() => {
    try {
      return valueOf(refused);
    } catch (error_) {
      return error_ as IdemkitError;
    }
  })();
  expect(error).toMatchObject({ code: "operation_refused", details: { refusal: { reason: "closed" } } });
});
