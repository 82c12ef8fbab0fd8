import type { NewOrder, Order } from "./order.ts";
import type { NewPayment, Payment, PaymentStatus } from "./payment.ts";

/** Where orders are kept. `tx` is whatever the adapter runs statements on. */
export interface Orders<Tx> {
  insert(tx: Tx, order: NewOrder): Promise<Order>;
  byId(tx: Tx, id: string): Promise<Order | undefined>;
}

/** Where payments are kept, behind both barriers of the database. */
export interface Payments<Tx> {
  /**
   * Writes the payment, or, where either barrier already has one, finds that: the same payment of the provider
   * under any key, or the same key used for this order and operation before.
   */
  insertOrFind(
    tx: Tx,
    payment: NewPayment,
    origin: { readonly operation: string; readonly key: string },
  ): Promise<{ readonly payment: Payment; readonly inserted: boolean }>;
}

/** What a command through the provider came under: a barrier in the database. */
export interface Origin {
  readonly operation: string;
  readonly key: string;
}

/** A payment through the provider, as it goes through the ledger of its operation: plain data. */
export interface ProviderPayment {
  readonly id: string;
  readonly orderId: string;
  readonly customerId: string;
  readonly provider: string;
  readonly externalPaymentId: string | null;
  readonly amount: string;
  readonly currency: string;
  readonly status: PaymentStatus;
}

/** Payments through the provider. Every member locks the order's row first, which puts them in a line. */
export interface ProviderPayments<Tx> {
  /**
   * Writes that the order's total is about to be charged, or finds the payment that came under the same key.
   * @throws ServiceError `order_not_found`, `order_not_payable`, `payment_in_progress`
   */
  open(tx: Tx, orderId: string, origin: Origin): Promise<ProviderPayment>;
  decline(tx: Tx, payment: ProviderPayment): Promise<void>;
  /** @throws ServiceError `order_not_payable` where the order is none any more */
  settle(tx: Tx, payment: ProviderPayment, externalPaymentId: string): Promise<void>;
  /** Undoes {@link open}, after the money went back or never came; the order may be paid for again. */
  reverse(tx: Tx, payment: ProviderPayment): Promise<void>;
}

/** A refund, as it goes through the ledger of its operation: plain data. */
export interface Refund {
  readonly id: string;
  readonly paymentId: string;
  readonly orderId: string;
  readonly provider: string;
  readonly externalPaymentId: string;
  readonly externalRefundId: string | null;
  readonly amount: string;
  readonly currency: string;
  readonly status: "reserved" | "refunded" | "refused";
}

/** What is to be given back: of an order's payment, or of one payment; all that is left where no amount is given. */
export interface RefundCommand {
  readonly of: "order" | "payment";
  readonly id: string;
  readonly amount?: string;
}

/** Refunds through the provider; under the order's lock as well. */
export interface Refunds<Tx> {
  /**
   * Sets the amount aside, so that refunds under different keys never exceed the payment together, or finds the refund that
   * came under the same key.
   * @throws ServiceError `payment_not_found`, `order_not_paid`, `refund_exceeds_payment`, `payment_refunded`
   */
  reserve(tx: Tx, command: RefundCommand, origin: Origin): Promise<Refund>;
  /** The provider said no: the amount is free again. */
  giveBack(tx: Tx, refund: Refund): Promise<void>;
  settle(tx: Tx, refund: Refund, externalRefundId: string): Promise<void>;
}

/** Stock of an order's items. */
export interface Stock<Tx> {
  /** @throws ServiceError `out_of_stock` */
  reserve(tx: Tx, orderId: string): Promise<void>;
  release(tx: Tx, orderId: string): Promise<void>;
  /** Takes what was reserved out of the stock. @throws ServiceError `item_recalled` */
  sell(tx: Tx, orderId: string): Promise<void>;
}
