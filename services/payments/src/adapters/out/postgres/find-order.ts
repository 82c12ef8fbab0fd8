import { parseMoney } from "../../../core/money.ts";
import type { Order, OrderStatus } from "../../../core/order.ts";
import type { Queryable } from "./queryable.ts";

interface OrderRow {
  readonly id: string;
  readonly customer_id: string;
  readonly status: OrderStatus;
  readonly total: string;
  readonly currency: string;
  readonly created_at: Date;
  readonly items: readonly { readonly sku: string; readonly quantity: number; readonly unitPrice: string }[];
}

const text = `
  select o.id, o.customer_id, o.status, o.total, o.currency, o.created_at,
    (select json_agg(json_build_object('sku', i.sku, 'quantity', i.quantity, 'unitPrice', i.unit_price::text)
                     order by i.position)
     from public.order_item i where i.order_id = o.id) as items
  from public.orders o
  where o.id = $1`;

export const findOrder = async (tx: Queryable, id: string): Promise<Order | undefined> => {
  const { rows } = await tx.query({ text, values: [id] });
  const [row] = rows as OrderRow[];
  return row === undefined ? undefined : toOrder(row);
};

const toOrder = (row: OrderRow): Order => ({
  id: row.id,
  customerId: row.customer_id,
  status: row.status,
  items: row.items.map((item) => ({ ...item, unitPrice: parseMoney("unitPrice", item.unitPrice) })),
  total: parseMoney("total", row.total),
  currency: row.currency,
  createdAt: row.created_at,
});
