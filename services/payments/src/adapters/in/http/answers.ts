import { formatMoney } from "../../../core/money.ts";
import type { Order } from "../../../core/order.ts";
import type { Payment } from "../../../core/payment.ts";

/** An order as clients see it; amounts are decimal strings of four places. */
export interface OrderAnswer {
  readonly id: string;
  readonly customerId: string;
  readonly status: string;
  readonly items: readonly { readonly sku: string; readonly quantity: number; readonly unitPrice: string }[];
  readonly total: string;
  readonly currency: string;
  readonly createdAt: string;
}

export const orderAnswerOf = (order: Order): OrderAnswer => ({
  id: order.id,
  customerId: order.customerId,
  status: order.status,
  items: order.items.map(({ sku, quantity, unitPrice }) => ({
    sku,
    quantity,
    unitPrice: formatMoney(unitPrice),
  })),
  total: formatMoney(order.total),
  currency: order.currency,
  createdAt: order.createdAt.toISOString(),
});

/** A payment as clients see it. */
export interface PaymentAnswer {
  readonly id: string;
  readonly orderId: string;
  readonly customerId: string;
  readonly provider: string;
  readonly externalPaymentId: string;
  readonly amount: string;
  readonly currency: string;
  readonly status: string;
}

export const paymentAnswerOf = (payment: Payment): PaymentAnswer => ({
  id: payment.id,
  orderId: payment.orderId,
  customerId: payment.customerId,
  provider: payment.provider,
  externalPaymentId: payment.externalPaymentId,
  amount: formatMoney(payment.amount),
  currency: payment.currency,
  status: payment.status,
});
