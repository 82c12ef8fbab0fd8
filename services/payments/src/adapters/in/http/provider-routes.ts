import type { FastifyInstance, FastifyReply, FastifyRequest, preHandlerAsyncHookHandler } from "fastify";
import { requireIdempotencyKey } from "idemkit/fastify";
import { parsePositiveMoney } from "../../../core/money.ts";
import { payable, readable } from "../../../core/order-access.ts";
import type { RefundCommand } from "../../../core/ports.ts";
import type { ProviderWork } from "../../../provider-work.ts";
import { findOrderOwner } from "../../out/postgres/find-order-owner.ts";
import { findPaymentOwner } from "../../out/postgres/find-payment-owner.ts";
import type { Queryable } from "../../out/postgres/queryable.ts";
import { principalOf, requireRoles } from "./guards.ts";
import { outcomeValue } from "./outcome-value.ts";
import { refundAnswerOf } from "./refund-answer.ts";
import type { RouteContext } from "./route-context.ts";
import { emptyBody, orderParams, refundBody } from "./schemas.ts";

interface ConfirmRequest {
  Params: { id: string };
}
interface RefundRequest {
  Params: { id: string };
  Body: { amount?: string } | null | undefined;
}

/** Thin on purpose: what they call can be finished without them, by the background of any process. */
export const providerRoutes = (
  app: FastifyInstance,
  { reads, authentication }: RouteContext,
  work: ProviderWork,
): void => {
  app.post<ConfirmRequest>(
    "/orders/:id/payment/confirm",
    {
      onRequest: [authentication, requireRoles("customer")],
      schema: { params: orderParams, body: emptyBody },
      preHandler: orderAllowed(reads, payable),
    },
    requireIdempotencyKey(async (request, reply, { key }) => {
      const command = { orderId: request.params.id.toLowerCase() };
      return outcomeValue(reply, await work.confirm({ scope: principalOf(request).sub, key, command }));
    }),
  );

  const refundRoute = (of: RefundCommand["of"], url: string, allowed: preHandlerAsyncHookHandler): void => {
    const refund = of === "order" ? work.refundOrder : work.refundPayment;
    app.post<RefundRequest>(
      url,
      {
        onRequest: [authentication, requireRoles("customer", "admin")],
        schema: { params: orderParams, body: refundBody },
        preHandler: [amountPossible, allowed],
      },
      requireIdempotencyKey(async (request, reply, { key }) => {
        const amount = request.body?.amount;
        const id = request.params.id.toLowerCase();
        const command = { of, id, ...(amount === undefined ? {} : { amount }) };
        const outcome = await refund({ scope: principalOf(request).sub, key, command });
        return refundAnswerOf(outcomeValue(reply, outcome));
      }),
    );
  };
  refundRoute("order", "/orders/:id/refund", orderAllowed(reads, readable));
  refundRoute("payment", "/payments/:id/refund", paymentAllowed(reads));
};

/** On every call, a replay too: the order is the caller's now. */
const orderAllowed =
  (reads: Queryable, allowed: typeof payable): preHandlerAsyncHookHandler =>
  async (request) => {
    const { id } = request.params as { readonly id: string };
    allowed(principalOf(request), "id", await findOrderOwner(reads, id));
  };

const paymentAllowed =
  (reads: Queryable): preHandlerAsyncHookHandler =>
  async (request) => {
    const { id } = request.params as { readonly id: string };
    readable(principalOf(request), "id", await findPaymentOwner(reads, id), "payment");
  };

const amountPossible: preHandlerAsyncHookHandler = async (request: FastifyRequest, _reply: FastifyReply) => {
  const { amount } = (request.body ?? {}) as { readonly amount?: string };
  if (amount !== undefined) {
    parsePositiveMoney("amount", amount);
  }
};
