import type { Queryable } from "./queryable.ts";

/** Something a customer is to be told. */
export interface Notification {
  readonly eventId: string;
  readonly orderId: string;
  readonly customerId: string;
  readonly subject: string;
}

const text = `
  insert into public.notification (event_id, order_id, customer_id, subject) values ($1, $2, $3, $4)`;

export const insertNotification = async (tx: Queryable, notification: Notification): Promise<void> => {
  const { eventId, orderId, customerId, subject } = notification;
  await tx.query({ text, values: [eventId, orderId, customerId, subject] });
};
