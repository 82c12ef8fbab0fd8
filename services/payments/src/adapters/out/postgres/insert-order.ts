import { formatMoney } from "../../../core/money.ts";
import type { NewOrder, Order } from "../../../core/order.ts";
import type { Queryable } from "./queryable.ts";

const text = `
  with inserted as (
    insert into public.orders (customer_id, status, total, currency)
    values ($1, $2, $3, $4)
    returning id, created_at
  ), items as (
    insert into public.order_item (order_id, position, sku, quantity, unit_price)
    select inserted.id, item.position, item.sku, item.quantity, item.unit_price
    from inserted,
      unnest($5::text[], $6::integer[], $7::numeric[]) with ordinality as item (sku, quantity, unit_price, position)
  )
  select id, created_at from inserted`;

/** Writes the order and its items in one statement. */
export const insertOrder = async (tx: Queryable, order: NewOrder): Promise<Order> => {
  const { rows } = await tx.query({
    text,
    values: [
      order.customerId,
      order.status,
      formatMoney(order.total),
      order.currency,
      order.items.map((item) => item.sku),
      order.items.map((item) => item.quantity),
      order.items.map((item) => formatMoney(item.unitPrice)),
    ],
  });
  const [row] = rows as { readonly id: string; readonly created_at: Date }[];
  if (row === undefined) {
    throw new Error("an inserted order came back without a row");
  }
  return { ...order, id: row.id, createdAt: row.created_at };
};
