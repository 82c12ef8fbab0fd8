import { ServiceError } from "../../../core/errors.ts";
import type { OrderStatus } from "../../../core/order.ts";
import type { Queryable } from "./queryable.ts";

/** The part of an order that payments and refunds decide by. */
export interface LockedOrder {
  readonly id: string;
  readonly customer_id: string;
  readonly status: OrderStatus;
  readonly total: string;
  readonly currency: string;
}

const lock = "select id, customer_id, status, total, currency from public.orders where id = $1 for update";
const move = "update public.orders set status = $2 where id = $1";

/** Takes the order's row until the transaction ends: payments and refunds of one order happen one after the other. */
export const lockOrder = async (tx: Queryable, id: string): Promise<LockedOrder> => {
  const { rows } = await tx.query({ text: lock, values: [id] });
  const [order] = rows as LockedOrder[];
  if (order === undefined) {
    throw new ServiceError({ kind: "not-found", code: "order_not_found", message: "there is no such order" });
  }
  return order;
};

export const setOrderStatus = async (tx: Queryable, id: string, status: OrderStatus): Promise<void> => {
  await tx.query({ text: move, values: [id, status] });
};
