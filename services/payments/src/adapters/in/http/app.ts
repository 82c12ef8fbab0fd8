import { fastify } from "fastify";
import type { FastifyBaseLogger, FastifyInstance } from "fastify";
import type { PostgresDatabase } from "idemkit";
import type { Pool, PoolClient } from "pg";
import type { ProviderWork } from "../../../provider-work.ts";
import { reader } from "../../out/postgres/reader.ts";
import type { Authenticator } from "./authentication.ts";
import { checkoutRoutes } from "./checkout-routes.ts";
import { authenticated } from "./guards.ts";
import { orderRoutes } from "./order-routes.ts";
import { paymentRoutes } from "./payment-routes.ts";
import { probeRoutes } from "./probe-routes.ts";
import { problemOfError } from "./problem-of-error.ts";
import { problem } from "./problem.ts";
import { providerRoutes } from "./provider-routes.ts";
import { sendProblem } from "./send-problem.ts";
import { webhookRoutes } from "./webhook-routes.ts";

export interface AppOptions {
  readonly pool: Pool;
  readonly database: PostgresDatabase<PoolClient>;
  readonly authenticate: Authenticator;
  readonly logger: FastifyBaseLogger;
  readonly stopping: () => boolean;
  readonly outboxAgeLimitMs: number | undefined;
  /** What goes through the provider; without one those routes are not there. */
  readonly work: ProviderWork | undefined;
  /** What the provider signs its webhooks with; without one the route is not there. */
  readonly webhookSecret: string | undefined;
}

/** Two hundred items of the longest kind fit with room to spare. */
const BODY_LIMIT_BYTES = 256 * 1024;

export const createApp = (options: AppOptions): FastifyInstance => {
  const { pool, database, authenticate, logger, stopping, outboxAgeLimitMs, work, webhookSecret } = options;
  const app = fastify({
    loggerInstance: logger,
    bodyLimit: BODY_LIMIT_BYTES,
    forceCloseConnections: "idle",
    // A request that is here already is served: the database is let go after the last of them.
    return503OnClosing: false,
    // Fastify's defaults would strip unknown members and turn numbers into strings: a command is taken as it is.
    ajv: {
      customOptions: { removeAdditional: false, coerceTypes: false, useDefaults: false, verbose: true },
    },
  });
  app.removeContentTypeParser("text/plain");
  app.setErrorHandler((error, request, reply) => {
    const answer = problemOfError(error);
    if (answer.status >= 500) {
      request.log.error({ err: error }, "a request failed");
    }
    return sendProblem(reply, answer);
  });
  app.setNotFoundHandler((_request, reply) =>
    sendProblem(reply, problem({ status: 404, code: "route_not_found", detail: "there is no such route" })),
  );
  const context = { reads: reader(pool), database, authentication: authenticated(authenticate) };
  const described = { provider: work !== undefined, webhooks: webhookSecret !== undefined };
  probeRoutes(app, { database, stopping, outboxAgeLimitMs, described });
  orderRoutes(app, context);
  paymentRoutes(app, context);
  if (work !== undefined) {
    providerRoutes(app, context, work);
    checkoutRoutes(app, context, work);
  }
  if (webhookSecret !== undefined) {
    webhookRoutes(app, { database, secret: webhookSecret, logger });
  }
  return app;
};
