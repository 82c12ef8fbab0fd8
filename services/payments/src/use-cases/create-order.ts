import { runOnce } from "idemkit";
import type { Database, Outcome, Stored } from "idemkit";
import { orderCreated } from "../core/events.ts";
import type { Events } from "../core/events.ts";
import type { CreateOrderCommand, Order } from "../core/order.ts";
import { newOrder } from "../core/order.ts";
import type { Orders } from "../core/ports.ts";

export interface CreateOrderOptions<Tx, Answer> {
  readonly database: Database<Tx>;
  readonly orders: Orders<Tx>;
  readonly events: Events<Tx>;
  /** The order as it is stored and answered, now and on every replay. */
  readonly answerOf: (order: Order) => Answer;
}

/** A repeat that comes later than this is a new order; three days cover a weekend's outage of a client. */
const RETENTION_HOURS = 72;

/**
 * Creates the order once for each customer and key. It is the second form of protection: the route only demands the
 * key, and the use case runs once, whoever calls it.
 */
export const createOrderHandler = <Tx, Answer>(options: CreateOrderOptions<Tx, Answer>) => {
  const { database, orders, events, answerOf } = options;
  return (command: CreateOrderCommand, key: string): Promise<Outcome<Stored<Answer>>> => {
    const wanted = newOrder(command);
    const identity = { scope: command.customerId, operation: "create-order", key };
    return runOnce(database, { ...identity, command, retentionHours: RETENTION_HOURS }, async ({ tx }) => {
      const order = await orders.insert(tx, wanted);
      await events.announce(tx, orderCreated(order));
      return answerOf(order);
    });
  };
};
