import { enqueue } from "idemkit";
import type { Events } from "../../../core/events.ts";

/** One topic for all that happens to an order, since order is kept within a topic's key. */
export const ORDER_TOPIC = "order";

/** Sends events with the transaction that makes them true. */
export const outboxEvents: Events<object> = {
  announce: async (tx, { type, data }) => {
    await enqueue(tx, { type, topic: ORDER_TOPIC, key: data.orderId, payload: data });
  },
};
