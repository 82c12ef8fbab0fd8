import { paymentCharged } from "../core/events.ts";
import type { Events } from "../core/events.ts";
import { formatMoney } from "../core/money.ts";
import type { Orders, Payments } from "../core/ports.ts";
import { payable } from "../core/order-access.ts";
import type { ChargeCommand, Payment } from "../core/payment.ts";
import { newPayment, sameCharge } from "../core/payment.ts";
import type { Principal } from "../core/principal.ts";

export interface ChargePaymentOptions<Tx> {
  readonly orders: Orders<Tx>;
  readonly payments: Payments<Tx>;
  readonly events: Events<Tx>;
}

export interface Charge {
  readonly principal: Principal;
  readonly command: ChargeCommand;
  /** What the charge came under: the second barrier in the database. */
  readonly origin: { readonly operation: string; readonly key: string };
}

/** Charges the order in the caller's transaction; `created` is false where the payment was already there. */
export const chargePaymentHandler = <Tx>({ orders, payments, events }: ChargePaymentOptions<Tx>) => {
  return async (
    tx: Tx,
    charge: Charge,
  ): Promise<{ readonly payment: Payment; readonly created: boolean }> => {
    const { principal, command, origin } = charge;
    const order = payable(principal, "orderId", await orders.byId(tx, command.orderId));
    const wanted = newPayment(order, command);
    const { payment, inserted } = await payments.insertOrFind(tx, wanted, origin);
    if (inserted) {
      await events.announce(tx, paymentCharged(payment, formatMoney(payment.amount)));
    }
    return { payment: sameCharge(payment, wanted), created: inserted };
  };
};
