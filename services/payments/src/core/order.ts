import { parseCurrency } from "./currency.ts";
import type { Money } from "./money.ts";
import { parsePositiveMoney, sum, times } from "./money.ts";

export interface OrderItem {
  readonly sku: string;
  readonly quantity: number;
  readonly unitPrice: Money;
}

export type OrderStatus = "pending" | "paid" | "partially_refunded" | "refunded";

/** An order that has been decided and not yet been written. */
export interface NewOrder {
  readonly customerId: string;
  readonly status: OrderStatus;
  readonly items: readonly OrderItem[];
  readonly total: Money;
  readonly currency: string;
}

export interface Order extends NewOrder {
  readonly id: string;
  readonly createdAt: Date;
}

/** What the client asks for; amounts are decimal strings. Shape and lengths were checked at the door. */
export interface CreateOrderCommand {
  readonly customerId: string;
  readonly items: readonly { readonly sku: string; readonly quantity: number; readonly unitPrice: string }[];
  readonly currency: string;
}

/** Prices the command. @throws ServiceError `validation_failed` naming the member at fault */
export const newOrder = (command: CreateOrderCommand): NewOrder => {
  const items = command.items.map((item, index) => ({
    sku: item.sku,
    quantity: item.quantity,
    unitPrice: parsePositiveMoney(`items[${index}].unitPrice`, item.unitPrice),
  }));
  const lines = items.map((item, index) => times(`items[${index}]`, item.unitPrice, item.quantity));
  return {
    customerId: command.customerId,
    status: "pending",
    items,
    total: sum("items", lines),
    currency: parseCurrency("currency", command.currency),
  };
};
