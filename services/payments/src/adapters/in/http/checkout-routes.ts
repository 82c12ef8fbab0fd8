import type { FastifyInstance, FastifyRequest, preHandlerAsyncHookHandler } from "fastify";
import { sagaStatus, startSaga } from "idemkit";
import { idempotency } from "idemkit/fastify";
import { payable, readable } from "../../../core/order-access.ts";
import type { ProviderWork } from "../../../provider-work.ts";
import { findCheckout, insertCheckout } from "../../out/postgres/checkouts.ts";
import { findOrderOwner } from "../../out/postgres/find-order-owner.ts";
import type { Queryable } from "../../out/postgres/queryable.ts";
import { principalOf, requireRoles } from "./guards.ts";
import type { RouteContext } from "./route-context.ts";
import { checkoutBody, orderParams } from "./schemas.ts";

interface CheckoutRequest {
  Body: { orderId: string };
}
interface CheckoutStateRequest {
  Params: { id: string };
}

/** Starts a checkout, which goes on by itself, and says how far it has come. */
export const checkoutRoutes = (
  app: FastifyInstance,
  { reads, authentication }: RouteContext,
  { database, checkout }: ProviderWork,
): void => {
  const idempotent = idempotency({ database, scope: (request: FastifyRequest) => principalOf(request).sub });

  app.post<CheckoutRequest>(
    "/checkouts",
    {
      onRequest: [authentication, requireRoles("customer")],
      schema: { body: checkoutBody },
      preHandler: orderAllowed(reads),
    },
    idempotent(
      { operation: "start-checkout", retentionHours: 24 },
      async (request, reply, { tx, operationId }) => {
        const { orderId } = request.body;
        // The saga takes the command's own id: the two can't be told apart, and neither can happen twice.
        await insertCheckout(tx, { id: operationId, orderId, customerId: principalOf(request).sub });
        await startSaga(database, checkout, { sagaId: operationId, input: { orderId }, tx });
        const answer = { id: operationId, orderId, state: "running" };
        return reply.code(202).header("location", `/checkouts/${operationId}`).send(answer);
      },
    ),
  );

  app.get<CheckoutStateRequest>(
    "/checkouts/:id",
    { onRequest: [authentication, requireRoles("customer", "admin")], schema: { params: orderParams } },
    async (request) => {
      const found = await findCheckout(reads, request.params.id);
      const { id, orderId } = readable(principalOf(request), "id", found, "checkout");
      const status = await sagaStatus(database, id);
      return {
        id,
        orderId,
        state: status?.state,
        ...(status?.failure === undefined ? {} : { failure: status.failure }),
      };
    },
  );
};

const orderAllowed =
  (reads: Queryable): preHandlerAsyncHookHandler =>
  async (request) => {
    const { orderId } = request.body as CheckoutRequest["Body"];
    payable(principalOf(request), "orderId", await findOrderOwner(reads, orderId));
  };
