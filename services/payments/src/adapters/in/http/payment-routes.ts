import type { FastifyInstance, FastifyRequest, preHandlerAsyncHookHandler } from "fastify";
import { idempotency } from "idemkit/fastify";
import { payable } from "../../../core/order-access.ts";
import type { ChargeCommand } from "../../../core/payment.ts";
import { checkCharge } from "../../../core/payment.ts";
import { chargePaymentHandler } from "../../../use-cases/charge-payment.ts";
import { outboxEvents } from "../../out/events/outbox-events.ts";
import { findOrderOwner } from "../../out/postgres/find-order-owner.ts";
import { findOrder } from "../../out/postgres/find-order.ts";
import { insertOrder } from "../../out/postgres/insert-order.ts";
import { insertOrFindPayment } from "../../out/postgres/insert-or-find-payment.ts";
import type { Queryable } from "../../out/postgres/queryable.ts";
import { sharedReads } from "../../out/postgres/shared-reads.ts";
import { paymentAnswerOf } from "./answers.ts";
import { principalOf, requireRoles } from "./guards.ts";
import type { RouteContext } from "./route-context.ts";
import { chargeBody } from "./schemas.ts";

interface ChargeRequest {
  Body: ChargeCommand;
}

export const paymentRoutes = (
  app: FastifyInstance,
  { reads, database, authentication }: RouteContext,
): void => {
  const idempotent = idempotency({ database, scope: (request: FastifyRequest) => principalOf(request).sub });
  const chargePayment = chargePaymentHandler({
    orders: { insert: insertOrder, byId: findOrder },
    payments: { insertOrFind: insertOrFindPayment },
    events: outboxEvents,
  });

  app.post<ChargeRequest>(
    "/payments",
    {
      onRequest: [authentication, requireRoles("customer")],
      schema: { body: chargeBody },
      preHandler: chargeAllowed(reads),
    },
    idempotent({ operation: "charge", retentionHours: 48 }, async (request, reply, { tx, key }) => {
      const { payment, created } = await chargePayment(tx, {
        principal: principalOf(request),
        command: request.body,
        origin: { operation: "charge", key },
      });
      return reply.code(created ? 201 : 200).send(paymentAnswerOf(payment));
    }),
  );
};

/**
 * What must hold on every call, a replay too, and so runs before the idempotency layer: the amount can be one, and
 * the order is the caller's now, whoever owned it when the stored answer was made.
 */
const chargeAllowed = (reads: Queryable): preHandlerAsyncHookHandler => {
  const ownerOf = sharedReads((orderId) => findOrderOwner(reads, orderId));
  return async (request) => {
    const command = request.body as ChargeCommand;
    checkCharge(command);
    payable(principalOf(request), "orderId", await ownerOf(command.orderId));
  };
};
