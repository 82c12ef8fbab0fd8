import { unprocessable } from "./errors.ts";
import { formatMoney } from "./money.ts";
import type { Money } from "./money.ts";

/**
 * What to give back of a payment: what was asked for, or all that is left.
 * @throws ServiceError `refund_exceeds_payment` where more is asked for than is left, `payment_refunded` where nothing is
 */
export const refundOf = (paid: Money, alreadyBack: Money, asked: Money | undefined): Money => {
  const left = (paid - alreadyBack) as Money;
  if (left === 0n) {
    throw unprocessable("payment_refunded", "amount", "can't be given back: all of the payment was");
  }
  const amount = asked ?? left;
  if (amount > left) {
    throw unprocessable("refund_exceeds_payment", "amount", `is more than is left, ${formatMoney(left)}`);
  }
  return amount;
};
