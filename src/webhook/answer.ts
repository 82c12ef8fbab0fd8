import { errorCatalogue } from "../errors.ts";
import type { ErrorCode } from "../errors.ts";
import type { EventOutcome } from "../inbox/outcome.ts";

/** An answer to a provider, before it is any framework's. */
export interface WebhookAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A failure that is told to the provider. */
export type WebhookFailure = Extract<ErrorCode, `webhook_${string}` | "inbox_unavailable">;

/** What a webhook answers beside 200. Providers retry after 5xx and time-outs, and give up on most 4xx. */
const statuses: Readonly<Record<WebhookFailure, number>> = {
  webhook_body_invalid: 400,
  webhook_event_id_missing: 400,
  // One answer for a missing, malformed, old or wrong signature: it must not help to guess one.
  webhook_signature_invalid: 401,
  webhook_method: 405,
  webhook_body_too_large: 413,
  webhook_handler_failed: 500,
  webhook_body_consumed: 500,
  inbox_unavailable: 503,
};

/** The event is settled: the provider may forget it. */
export function settled(outcome: EventOutcome): WebhookAnswer {
  return { status: 200, headers: { "content-type": "application/json" }, body: JSON.stringify({ outcome }) };
}

/** Problem details (RFC 9457) without anything of the event or of the error's cause. */
export function refused(code: WebhookFailure, headers: Readonly<Record<string, string>> = {}): WebhookAnswer {
  const status = statuses[code];
  const { message: detail } = errorCatalogue[code];
  return {
    status,
    headers: { "content-type": "application/problem+json", "cache-control": "no-store", ...headers },
    body: JSON.stringify({ type: "about:blank", title: code.replaceAll("_", " "), status, code, detail }),
  };
}
