import { orderPaid, paymentCharged } from "../../../core/events.ts";
import type { Events } from "../../../core/events.ts";
import type { ProviderPayments, Refunds } from "../../../core/ports.ts";
import { findOrderOwner } from "../postgres/find-order-owner.ts";
import type { Queryable } from "../postgres/queryable.ts";

/** The same payments, which are told of when they are settled, whichever use case does it. */
export const announcedPayments = <Tx>(
  payments: ProviderPayments<Tx>,
  events: Events<Tx>,
): ProviderPayments<Tx> => ({
  ...payments,
  settle: async (tx, payment, externalPaymentId) => {
    await payments.settle(tx, payment, externalPaymentId);
    await events.announce(tx, paymentCharged(payment, payment.amount));
    await events.announce(tx, orderPaid(payment));
  },
});

/** The same refunds, which are told of when the provider has made them. */
export const announcedRefunds = <Tx extends Queryable>(
  refunds: Refunds<Tx>,
  events: Events<Tx>,
): Refunds<Tx> => ({
  ...refunds,
  settle: async (tx, refund, externalRefundId) => {
    await refunds.settle(tx, refund, externalRefundId);
    const { id: refundId, paymentId, orderId, provider, amount, currency } = refund;
    const customerId = (await findOrderOwner(tx, orderId))?.customerId ?? "";
    const data = { orderId, customerId, paymentId, refundId, provider, amount, currency };
    await events.announce(tx, { type: "payment.refunded", data });
  },
});
