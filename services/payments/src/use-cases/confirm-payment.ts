import { refuse, withEffects } from "idemkit";
import type { OperationWithEffects, PostgresDatabase } from "idemkit";
import { ServiceError } from "../core/errors.ts";
import type { ProviderPayment, ProviderPayments } from "../core/ports.ts";
import type { Provider } from "../core/provider.ts";
import { storedRefusalOf } from "../core/refusal.ts";
import { moveOnce } from "./provider-effect.ts";
import { refusing } from "./refusing.ts";

export interface ConfirmPaymentOptions<Tx> {
  readonly database: PostgresDatabase<Tx>;
  readonly provider: Provider;
  readonly payments: ProviderPayments<Tx>;
  readonly leaseMs: number;
}

/** Plain data: the rescuer runs it again from the database. */
export interface ConfirmPayment {
  readonly orderId: string;
}

export type ConfirmPaymentOperation = OperationWithEffects<ConfirmPayment, ProviderPayment>;

/** Confirms and refunds are repeated within hours, by a person or by a job that runs daily. */
export const PROVIDER_RETENTION_HOURS = 24;

/**
 * Charges an order's total through the provider. The payment is written before the call and settled with the answer, so
 * that at every moment the database says what may have happened.
 */
export const confirmPayment = <Tx>(options: ConfirmPaymentOptions<Tx>): ConfirmPaymentOperation => {
  const { database, provider, payments, leaseMs } = options;
  const operation = "confirm-payment";
  // A process that is paused inside its last transaction holds the order's row no longer than its lease.
  const settings = { operation, retentionHours: PROVIDER_RETENTION_HOURS, leaseMs, idleTimeoutMs: leaseMs };
  return withEffects(
    database,
    settings,
    async ({ orderId }: ConfirmPayment, once): Promise<ProviderPayment> => {
      const { key, phase, effect, transaction } = once;
      const payment: ProviderPayment = await refusing(
        phase("open", (tx) => payments.open(tx, orderId, { operation, key })),
      );
      // The key was used before, and its record has expired: the second barrier still knows.
      if (payment.status !== "charging") {
        return earlier(payment);
      }
      const { id, amount, currency } = payment;
      const charge = await moveOnce(effect, provider, { kind: "charge", amount, currency, reference: id });
      if ("refusal" in charge) {
        await phase("decline", (tx) => payments.decline(tx, payment));
        throw refuse(charge.refusal);
      }
      const externalPaymentId = charge.moved.id;
      await transaction((tx) => payments.settle(tx, payment, externalPaymentId));
      return { ...payment, externalPaymentId, status: "paid" };
    },
  );
};

const earlier = (payment: ProviderPayment): ProviderPayment => {
  if (payment.status === "paid") {
    return payment;
  }
  const message = "an earlier payment under this key did not come about";
  throw refuse(
    storedRefusalOf(new ServiceError({ kind: "conflict", code: `payment_${payment.status}`, message })),
  );
};
