import type { FastifyBaseLogger, FastifyInstance } from "fastify";
import type { PostgresDatabase } from "idemkit";
import { standardWebhooks, webhook } from "idemkit/webhook";
import type { PoolClient } from "pg";
import { eventData } from "../../../core/event-data.ts";
import { recordCharge, recordRefund } from "../../out/postgres/record-statement.ts";

export interface WebhookRouteOptions {
  readonly database: PostgresDatabase<PoolClient>;
  /** `whsec_` and base64, from the provider's console. */
  readonly secret: string;
  readonly logger: FastifyBaseLogger;
}

/** An event as the provider sends it. */
interface ProviderEvent {
  readonly type: string;
  readonly data: unknown;
}

/** The provider's name in our books. */
const PROVIDER = "acme-pay";

/**
 * What the provider tells, once for each of its event ids. 2xx says that it is in the database; the provider sends anything
 * else again.
 */
export const webhookRoutes = (
  app: FastifyInstance,
  { database, secret, logger }: WebhookRouteOptions,
): void => {
  const verify = standardWebhooks(secret);
  const onError = (error: unknown): void => logger.error({ err: error }, "a webhook failed");
  const provider = webhook<PoolClient, ProviderEvent>(
    { database, consumer: "provider-webhooks", verify, onError },
    async ({ type, data }, { tx }) => {
      if (type === "charge.succeeded") {
        await recordCharge(tx, movementOf(data, "id"), eventData(data).text("reference"));
      }
      if (type === "refund.succeeded") {
        await recordRefund(tx, movementOf(data, "reference"));
      }
      // Other types are taken and left alone: the provider may add some at any time.
    },
  );

  // A scope of its own: the signature is over the bytes as they came, and the other routes want theirs parsed.
  app.register(async (raw) => {
    raw.removeAllContentTypeParsers();
    raw.addContentTypeParser("*", { parseAs: "buffer" }, async (_request: unknown, body: Buffer) => body);
    raw.post("/webhooks/provider", async ({ method, headers, body }, reply) => {
      const header = (name: string): string | undefined => headers[name]?.toString();
      const bytes = body instanceof Uint8Array ? body : new Uint8Array();
      const answer = await provider.receive({ method, header, body: bytes });
      return reply.code(answer.status).headers(answer.headers).send(answer.body);
    });
  });
};

/** The charge has its id under `id` in an event of its own, and under `reference` in one of a refund. */
const movementOf = (data: unknown, nameOfCharge: "id" | "reference") => {
  const { text, money } = eventData(data);
  const [chargeId, amount, currency] = [text(nameOfCharge), money("amount"), text("currency")];
  return { provider: PROVIDER, chargeId, amount, currency };
};
