import { parseCurrency } from "./currency.ts";
import { ServiceError, unprocessable } from "./errors.ts";
import { formatMoney, parsePositiveMoney } from "./money.ts";
import type { Money } from "./money.ts";
import type { Order } from "./order.ts";

/**
 * `pending` payments were made elsewhere and are only written down here. The others go through the provider: `charging`
 * until it is known what became of the call; `reversed` where a checkout was undone.
 */
export type PaymentStatus = "pending" | "charging" | "paid" | "declined" | "reversed";

/** What the client asks for. Shape and lengths were checked at the door. */
export interface ChargeCommand {
  readonly orderId: string;
  readonly provider: string;
  readonly externalPaymentId: string;
  readonly amount: string;
  readonly currency: string;
}

/** A charge that has been decided and not yet been written. */
export interface NewPayment {
  readonly orderId: string;
  readonly customerId: string;
  readonly provider: string;
  readonly externalPaymentId: string;
  readonly amount: Money;
  readonly currency: string;
  readonly status: PaymentStatus;
}

export interface Payment extends NewPayment {
  readonly id: string;
}

/** @throws ServiceError `validation_failed` naming the member at fault; needs nothing but the command itself */
export const checkCharge = (
  command: ChargeCommand,
): { readonly amount: Money; readonly currency: string } => ({
  amount: parsePositiveMoney("amount", command.amount),
  currency: parseCurrency("currency", command.currency),
});

/** The payment that `command` makes of `order`. @throws ServiceError `amount_mismatch` or `currency_mismatch` */
export const newPayment = (order: Order, command: ChargeCommand): NewPayment => {
  const { amount, currency } = checkCharge(command);
  if (currency !== order.currency) {
    throw unprocessable("currency_mismatch", "currency", `differs from the order's, ${order.currency}`);
  }
  if (amount !== order.total) {
    throw unprocessable(
      "amount_mismatch",
      "amount",
      `differs from the order's total, ${formatMoney(order.total)}`,
    );
  }
  return {
    orderId: order.id,
    customerId: order.customerId,
    provider: command.provider,
    externalPaymentId: command.externalPaymentId,
    amount,
    currency,
    status: "pending",
  };
};

/**
 * The payment found behind a barrier, where it is the same charge.
 * @throws ServiceError `payment_conflict` where it is another: says which members differ, never their values,
 * because the payment found can be another customer's
 */
export const sameCharge = (found: Payment, wanted: NewPayment): Payment => {
  const members = ["orderId", "provider", "externalPaymentId", "amount", "currency"] as const;
  const faults = members
    .filter((member) => found[member] !== wanted[member])
    .map((field) => ({ field, message: "differs from the payment already made" }));
  if (faults.length > 0) {
    throw new ServiceError({
      kind: "conflict",
      code: "payment_conflict",
      message: "this payment was already made with other details",
      faults,
    });
  }
  return found;
};
