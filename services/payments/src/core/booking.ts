import { eventData } from "./event-data.ts";
import type { OrderEvent } from "./events.ts";

/** One movement between two accounts: what one gains the other loses, so all balances add up to zero. */
export interface Booking {
  readonly orderId: string;
  readonly debit: string;
  readonly credit: string;
  readonly amount: string;
  readonly currency: string;
}

const SALES = "sales";
const customer = (id: string): string => `customer:${id}`;
const provider = (name: string): string => `provider:${name}`;

type BookedType = Exclude<OrderEvent["type"], "order.paid">;

/**
 * How each event is booked: a customer owes an order's total, a charge moves the debt to the provider, and a refund is
 * taken off the sales. @throws ServiceError `validation_failed` where the event's data is no such event
 */
export const bookings: Readonly<Record<BookedType, (data: unknown) => Booking>> = {
  "order.created": (data) => {
    const { text, money } = eventData(data);
    return { ...common(data), debit: customer(text("customerId")), credit: SALES, amount: money("total") };
  },
  "payment.charged": (data) => {
    const { text, money } = eventData(data);
    const debit = provider(text("provider"));
    return { ...common(data), debit, credit: customer(text("customerId")), amount: money("amount") };
  },
  "payment.refunded": (data) => {
    const { text, money } = eventData(data);
    return { ...common(data), debit: SALES, credit: provider(text("provider")), amount: money("amount") };
  },
};

const common = (data: unknown): { readonly orderId: string; readonly currency: string } => {
  const { text } = eventData(data);
  return { orderId: text("orderId"), currency: text("currency") };
};
