import { refuse, runOnce, valueOf } from "idemkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { charge, chargeOf, isolations, paymentsDatabase } from "./support/payments.ts";
import type { PaymentOnce, Payments } from "./support/payments.ts";
import { gate, waitsForLock } from "./support/steps.ts";

let payments: Payments;
beforeAll(async () => {
  payments = await paymentsDatabase();
});
afterAll(() => payments[Symbol.asyncDispose]());

async function declined(once: PaymentOnce): Promise<never> {
  await charge(once);
  throw refuse({ reason: "card-expired" });
}

describe.each(isolations)("under %s", (isolation) => {
  test("a refusal rolls the writes back, is stored, and is replayed without running the handler", async () => {
    const key = `refused-${isolation}`;
    const first = await runOnce(payments.process(), chargeOf(key, { isolation }), declined);
    const again = await runOnce(payments.process(), chargeOf(key, { isolation }), charge);
    expect(first).toMatchObject({
      outcome: "executed",
      disposition: "refuse",
      refusal: { reason: "card-expired" },
    });
    expect(again).toEqual({ ...first, outcome: "replayed" });
    expect(await payments.payments(key)).toEqual([]);
    expect(() => valueOf(again)).toThrow(
      expect.objectContaining({ code: "operation_refused", retryable: false }) as Error,
    );
  });

  test("a refusal that meets another attempt's open record answers what that comes to", async () => {
    const key = `conflict-${isolation}`;
    const handlerIn = gate();
    const may = gate();
    const refusing = runOnce(payments.process(), chargeOf(key, { isolation }), async (once) => {
      handlerIn.open();
      await may.opened;
      return declined(once);
    });
    await handlerIn.opened;
    // Another attempt by hand, as after a lost lock: its record is written and not yet committed.
    const other = await payments.admin.connect();
    await other.query("begin");
    await other.query(
      `insert into idemkit.idempotency_record
         (scope, operation, key, operation_id, fingerprint, disposition, headers, body, expires_at)
       select scope, operation, $1, gen_random_uuid(), fingerprint, 'keep', '[]', '"theirs"', now() + interval '1 day'
       from idemkit.idempotency_record limit 1`,
      [key],
    );
    may.open();
    await waitsForLock(payments.admin, 'insert into "idemkit".idempotency_record');
    await other.query("commit");
    other.release();
    expect(await refusing).toMatchObject({ outcome: "replayed", disposition: "keep", value: "theirs" });
  });

  test("a discarded run leaves the key free, and its error reaches the caller", async () => {
    const key = `discarded-${isolation}`;
    const fault = new Error("no stock today");
    const run = runOnce(payments.process(), chargeOf(key, { isolation }), async (once) => {
      await charge(once);
      throw fault;
    });
    await expect(run).rejects.toBe(fault);
    expect(await runOnce(payments.process(), chargeOf(key, { isolation }), charge)).toMatchObject({
      outcome: "executed",
    });
    expect(await payments.payments(key)).toHaveLength(1);
  });

  test("an answer marked as not final is given, and neither it nor its writes are kept", async () => {
    const key = `not-final-${isolation}`;
    const first = await runOnce(payments.process(), chargeOf(key, { isolation }), async (once) => {
      await charge(once);
      once.notFinal();
      return "wrong code";
    });
    expect(first).toMatchObject({ outcome: "executed", disposition: "discard", value: "wrong code" });
    expect(await payments.payments(key)).toEqual([]);
    expect(await runOnce(payments.process(), chargeOf(key, { isolation }), charge)).toMatchObject({
      outcome: "executed",
    });
  });
});

test("a refusal marked as not final is not stored", async () => {
  const run = runOnce(payments.process(), chargeOf("not-final-refusal"), (once) => {
    once.notFinal();
    throw refuse("wrong code");
  });
  await expect(run).rejects.toMatchObject({ name: "Refusal", value: "wrong code" });
  expect(await runOnce(payments.process(), chargeOf("not-final-refusal"), charge)).toMatchObject({
    outcome: "executed",
  });
});
