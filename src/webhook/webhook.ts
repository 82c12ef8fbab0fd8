import type { IncomingMessage, ServerResponse } from "node:http";

import { createInbox } from "../inbox/create-inbox.ts";
import type { EventContext } from "../inbox/handler.ts";
import { checkFunction } from "../internal/options.ts";
import { answerFetch } from "./fetch.ts";
import { answerNode } from "./node.ts";
import { webhookSettings } from "./options.ts";
import type { WebhookOptions } from "./options.ts";
import { receive } from "./receive.ts";
import type { WebhookDelivery } from "./receive.ts";
import type { WebhookAnswer } from "./answer.ts";

/** What a webhook's handler is given last. */
export interface WebhookContext<Tx> extends EventContext<Tx> {
  /** The bytes that were signed. */
  readonly body: Uint8Array;
}

/** A webhook in the forms that frameworks take. */
export interface Webhook {
  /** `(Request) => Promise<Response>`: Hono (`c.req.raw`), Next, Deno, Bun. */
  (request: Request): Promise<Response>;
  /** Node's and Express's form. It needs the raw body: mount it before body parsers, or behind `express.raw`. */
  node(request: IncomingMessage, response: ServerResponse): Promise<void>;
  /** For every other framework: give it the bytes as they came. Never rejects. */
  receive(delivery: WebhookDelivery): Promise<WebhookAnswer>;
}

/**
 * Receives a provider's webhooks: each event takes effect once, however often the provider sends it, because the record
 * of its id commits in the same transaction as what the handler changed; 2xx is answered only after that.
 * @throws IdemkitError `option_invalid`.
 */
export function webhook<Tx, E = unknown>(
  options: WebhookOptions<Tx, E>,
  handler: (event: E, context: WebhookContext<Tx>) => unknown,
): Webhook {
  const settings = webhookSettings(options);
  checkFunction("handler", handler);
  const inbox = createInbox(
    { database: options.database, ...settings.inbox },
    { "*": ({ payload }, context) => handler(settings.parse(payload), { ...context, body: payload }) },
  );
  const answer = (delivery: WebhookDelivery): Promise<WebhookAnswer> => receive(settings, inbox, delivery);
  const { maxBodyBytes, onError } = settings;
  return Object.assign(
    (request: Request): Promise<Response> => answerFetch(request, { maxBodyBytes, answer, onError }),
    {
      node: (request: IncomingMessage, response: ServerResponse): Promise<void> =>
        answerNode(request, response, { maxBodyBytes, answer, onError }),
      receive: answer,
    },
  );
}
