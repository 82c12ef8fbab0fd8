import { ServiceError } from "../../../core/errors.ts";
import type { Stock } from "../../../core/ports.ts";
import type { Queryable } from "./queryable.ts";

const wanted = `
  (select sku, sum(quantity)::integer as quantity from public.order_item where order_id = $1 group by sku) as wanted`;
// In one order, so that two checkouts can't wait for each other.
const lock = `
  select s.sku, s.recalled, s.on_hand - s.reserved >= wanted.quantity as enough,
    (select count(distinct sku)::integer from public.order_item where order_id = $1) as kinds
  from ${wanted} join public.stock s using (sku)
  order by s.sku for update of s`;
const change = {
  reserve: "reserved = reserved + wanted.quantity",
  release: "reserved = reserved - wanted.quantity",
  sell: "reserved = reserved - wanted.quantity, on_hand = on_hand - wanted.quantity",
};

interface StockRow {
  readonly sku: string;
  readonly recalled: boolean;
  readonly enough: boolean;
  /** How many different items the order has; one that was never in stock has no row. */
  readonly kinds: number;
}

export const stock: Stock<Queryable> = {
  reserve: async (tx, orderId) => {
    const rows = await locked(tx, orderId);
    if (rows.length !== rows[0]?.kinds || rows.some(({ enough }) => !enough)) {
      throw conflict("out_of_stock", "an item of the order is out of stock");
    }
    await apply(tx, orderId, "reserve");
  },
  release: async (tx, orderId) => {
    await locked(tx, orderId);
    await apply(tx, orderId, "release");
  },
  sell: async (tx, orderId) => {
    const rows = await locked(tx, orderId);
    if (rows.some(({ recalled }) => recalled)) {
      throw conflict("item_recalled", "an item of the order was recalled");
    }
    await apply(tx, orderId, "sell");
  },
};

const locked = async (tx: Queryable, orderId: string): Promise<readonly StockRow[]> => {
  const { rows } = await tx.query({ text: lock, values: [orderId] });
  return rows as StockRow[];
};

const apply = async (tx: Queryable, orderId: string, what: keyof typeof change): Promise<void> => {
  const text = `update public.stock s set ${change[what]} from ${wanted} where s.sku = wanted.sku`;
  await tx.query({ text, values: [orderId] });
};

const conflict = (code: string, message: string): ServiceError =>
  new ServiceError({ kind: "conflict", code, message });
