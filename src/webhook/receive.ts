import type { EventMessage } from "../core/event.ts";
import { IdemkitError, isIdemkitError } from "../errors.ts";
import { derivedEventId } from "../inbox/event-id.ts";
import type { Inbox } from "../inbox/inbox.ts";
import { refused, settled } from "./answer.ts";
import type { WebhookAnswer, WebhookFailure } from "./answer.ts";
import type { WebhookSettings } from "./options.ts";
import type { SignedRequest } from "./verifier.ts";

/** A delivery as every framework can give it. */
export interface WebhookDelivery {
  readonly method: string;
  header(name: string): string | undefined;
  readonly body: Uint8Array;
}

/** A delivery whose signature is good. */
export interface Genuine<E> {
  readonly event: E;
  /** The provider's id. */
  readonly id: string;
}

/** Verifies a delivery, records its event and handles it; resolves when that has committed. Never rejects. */
export async function receive<E>(
  settings: WebhookSettings<E>,
  inbox: Inbox,
  { method, header, body }: WebhookDelivery,
): Promise<WebhookAnswer> {
  if (method !== "POST") return refused("webhook_method", { allow: "POST" });
  if (body.length > settings.maxBodyBytes) return refused("webhook_body_too_large");
  try {
    const genuine = await genuineOf(settings, { header, body, nowSeconds: Date.now() / 1000 });
    if (typeof genuine === "string") return refused(genuine);
    return settled(await inbox.process(messageOf(settings, genuine, body)));
  } catch (error) {
    settings.onError(isIdemkitError(error, "event_handler_failed") ? error.cause : error);
    const away = isIdemkitError(error, "inbox_unavailable");
    if (!away) return refused("webhook_handler_failed");
    return refused("inbox_unavailable", { "retry-after": String(settings.retryAfterSeconds) });
  }
}

async function genuineOf<E>(
  settings: WebhookSettings<E>,
  request: SignedRequest,
): Promise<Genuine<E> | WebhookFailure> {
  const verified = await settings.verify.verify(request);
  if (verified === undefined) return "webhook_signature_invalid";
  let event: E;
  try {
    event = settings.parse(request.body);
  } catch {
    return "webhook_body_invalid";
  }
  const id: unknown =
    settings.eventId === undefined ? (verified.eventId ?? idOf(event)) : settings.eventId(event);
  return typeof id === "string" && id !== "" ? { event, id } : "webhook_event_id_missing";
}

/** The id is the provider's, whatever it looks like: only an id that this provider gave may be taken for it. */
function messageOf<E>(
  settings: WebhookSettings<E>,
  { event, id }: Genuine<E>,
  payload: Uint8Array,
): EventMessage {
  const { source } = settings.verify;
  return {
    eventId: derivedEventId("webhook", source, id),
    type: settings.type(event),
    topic: `webhook.${source}`,
    key: id.replaceAll("\0", ""),
    payload,
    headers: {},
  };
}

function idOf(event: unknown): unknown {
  return typeof event === "object" && event !== null && "id" in event ? event.id : undefined;
}

/** The body could not be read as it came. */
export function consumed(): IdemkitError {
  return new IdemkitError("webhook_body_consumed");
}
