import type { FastifyInstance } from "fastify";
import { valueOf } from "idemkit";
import { requireIdempotencyKey } from "idemkit/fastify";
import { readable } from "../../../core/order-access.ts";
import type { CreateOrderCommand } from "../../../core/order.ts";
import { outboxEvents } from "../../out/events/outbox-events.ts";
import { insertOrder } from "../../out/postgres/insert-order.ts";
import { findOrder } from "../../out/postgres/find-order.ts";
import { createOrderHandler } from "../../../use-cases/create-order.ts";
import { orderAnswerOf } from "./answers.ts";
import { principalOf, requireRoles } from "./guards.ts";
import { createOrderBody, orderParams } from "./schemas.ts";
import type { RouteContext } from "./route-context.ts";

interface CreateOrderRequest {
  Body: Omit<CreateOrderCommand, "customerId">;
}
interface OrderRequest {
  Params: { id: string };
}

export const orderRoutes = (
  app: FastifyInstance,
  { reads, database, authentication }: RouteContext,
): void => {
  const createOrder = createOrderHandler({
    database,
    orders: { insert: insertOrder, byId: findOrder },
    events: outboxEvents,
    answerOf: orderAnswerOf,
  });

  app.post<CreateOrderRequest>(
    "/orders",
    { onRequest: [authentication, requireRoles("customer")], schema: { body: createOrderBody } },
    requireIdempotencyKey(async (request, reply, { key }) => {
      const { items, currency } = request.body;
      const outcome = await createOrder({ customerId: principalOf(request).sub, items, currency }, key);
      const order = valueOf(outcome);
      if (outcome.outcome === "replayed") {
        void reply.headers({ "idempotent-replayed": "true", "cache-control": "no-store" });
      }
      return reply.code(201).header("location", `/orders/${order.id}`).send(order);
    }),
  );

  app.get<OrderRequest>(
    "/orders/:id",
    { onRequest: [authentication, requireRoles("customer", "admin")], schema: { params: orderParams } },
    async (request) => {
      const order = await findOrder(reads, request.params.id);
      return orderAnswerOf(readable(principalOf(request), "id", order));
    },
  );
};
