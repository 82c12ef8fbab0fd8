import { refuse, withEffects } from "idemkit";
import type { OperationWithEffects, PostgresDatabase } from "idemkit";
import { ServiceError } from "../core/errors.ts";
import type { Refund, RefundCommand, Refunds } from "../core/ports.ts";
import type { Provider } from "../core/provider.ts";
import { storedRefusalOf } from "../core/refusal.ts";
import { PROVIDER_RETENTION_HOURS } from "./confirm-payment.ts";
import { moveOnce } from "./provider-effect.ts";
import { refusing } from "./refusing.ts";

export interface RefundPaymentOptions<Tx> {
  readonly database: PostgresDatabase<Tx>;
  readonly provider: Provider;
  readonly refunds: Refunds<Tx>;
  readonly leaseMs: number;
}

export type RefundPaymentOperation = OperationWithEffects<RefundCommand, Refund>;

/**
 * Gives back a payment, or a part of it, through the provider. The amount is set aside under the order's lock before the
 * call, so that refunds at the same time never exceed the payment, and is free again when the provider says no.
 */
export const refundPayment = <Tx>(
  operation: "refund-order" | "refund-payment",
  { database, provider, refunds, leaseMs }: RefundPaymentOptions<Tx>,
): RefundPaymentOperation => {
  const settings = { operation, retentionHours: PROVIDER_RETENTION_HOURS, leaseMs, idleTimeoutMs: leaseMs };
  return withEffects(database, settings, async (command: RefundCommand, once): Promise<Refund> => {
    const { key, phase, effect, transaction } = once;
    const refund: Refund = await refusing(
      phase("reserve", (tx) => refunds.reserve(tx, command, { operation, key })),
    );
    if (refund.status !== "reserved") {
      return earlier(refund);
    }
    const { amount, currency, externalPaymentId: reference } = refund;
    const given = await moveOnce(effect, provider, { kind: "refund", amount, currency, reference });
    if ("refusal" in given) {
      await phase("give-back", (tx) => refunds.giveBack(tx, refund));
      throw refuse(given.refusal);
    }
    const externalRefundId = given.moved.id;
    await transaction((tx) => refunds.settle(tx, refund, externalRefundId));
    return { ...refund, externalRefundId, status: "refunded" };
  });
};

const earlier = (refund: Refund): Refund => {
  if (refund.status === "refunded") {
    return refund;
  }
  const message = "an earlier refund under this key did not come about";
  throw refuse(storedRefusalOf(new ServiceError({ kind: "conflict", code: "refund_refused", message })));
};
