import type { NewOrder, Order } from "./order.ts";
import type { NewPayment, Payment } from "./payment.ts";

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
