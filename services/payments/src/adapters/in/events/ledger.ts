import type { EventHandler } from "idemkit";
import { bookings } from "../../../core/booking.ts";
import { book } from "../../out/postgres/book.ts";
import type { Queryable } from "../../out/postgres/queryable.ts";

type Handler = EventHandler<Queryable>;

const booking =
  (type: keyof typeof bookings): Handler =>
  ({ eventId, data }, { tx }) =>
    book(tx, eventId, bookings[type](data));

/** Keeps balances by double entry. It has nothing against duplicates: that is the inbox's work. */
export const ledgerHandlers: Readonly<Record<string, Handler>> = {
  "order.created": booking("order.created"),
  "payment.charged": booking("payment.charged"),
  "payment.refunded": booking("payment.refunded"),
};
