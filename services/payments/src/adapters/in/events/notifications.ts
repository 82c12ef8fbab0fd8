import type { EventHandler } from "idemkit";
import { eventData } from "../../../core/event-data.ts";
import { insertNotification } from "../../out/postgres/insert-notification.ts";
import type { Queryable } from "../../out/postgres/queryable.ts";

type Handler = EventHandler<Queryable>;

const telling =
  (subject: string): Handler =>
  async ({ eventId, data }, { tx }) => {
    const { text } = eventData(data);
    const [orderId, customerId] = [text("orderId"), text("customerId")];
    await insertNotification(tx, { eventId, orderId, customerId, subject });
  };

/** Notes what customers are to be told of the events that the ledger books, and of one more. */
export const notificationHandlers: Readonly<Record<string, Handler>> = {
  "order.created": telling("we have your order"),
  "payment.charged": telling("we have charged you"),
  "order.paid": telling("your order is paid for"),
  "payment.refunded": telling("you get money back"),
};
