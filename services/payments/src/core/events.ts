import { formatMoney } from "./money.ts";
import type { Order } from "./order.ts";

/** What other parts of the business are told; amounts are decimal strings of four places. */
export type OrderEvent = OrderCreated | OrderPaid | PaymentCharged | PaymentRefunded;

/** What every event says: the order it belongs to is also what keeps events in order. */
interface AboutOrder {
  readonly [name: string]: string;
  readonly orderId: string;
  readonly customerId: string;
  readonly currency: string;
}

export interface OrderCreated {
  readonly type: "order.created";
  readonly data: AboutOrder & { readonly total: string };
}

/** The order's total was charged through the provider; follows the charge. */
export interface OrderPaid {
  readonly type: "order.paid";
  readonly data: AboutOrder & { readonly paymentId: string };
}

export interface PaymentCharged {
  readonly type: "payment.charged";
  readonly data: AboutOrder & {
    readonly paymentId: string;
    readonly provider: string;
    readonly amount: string;
  };
}

export interface PaymentRefunded {
  readonly type: "payment.refunded";
  readonly data: AboutOrder & {
    readonly paymentId: string;
    readonly refundId: string;
    readonly provider: string;
    readonly amount: string;
  };
}

/** Where events go: they are there when the transaction commits, and never otherwise. */
export interface Events<Tx> {
  announce(tx: Tx, event: OrderEvent): Promise<void>;
}

export const orderCreated = ({ id: orderId, customerId, total, currency }: Order): OrderCreated => ({
  type: "order.created",
  data: { orderId, customerId, total: formatMoney(total), currency },
});

/** A payment as either way of paying knows it. */
interface ChargedPayment {
  readonly id: string;
  readonly orderId: string;
  readonly customerId: string;
  readonly provider: string;
  readonly currency: string;
}

export const paymentCharged = (payment: ChargedPayment, amount: string): PaymentCharged => {
  const { id: paymentId, orderId, customerId, provider, currency } = payment;
  return { type: "payment.charged", data: { orderId, customerId, paymentId, provider, amount, currency } };
};

export const orderPaid = ({ id: paymentId, orderId, customerId, currency }: ChargedPayment): OrderPaid => ({
  type: "order.paid",
  data: { orderId, customerId, paymentId, currency },
});
