import { errorCatalogue } from "../errors.ts";
import type { ErrorCode } from "../errors.ts";
import { statusOf } from "../http/status.ts";
import type { EventOutcome } from "../inbox/outcome.ts";

/** An answer to a provider, before it is any framework's. */
export interface WebhookAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A failure that is told to the provider. */
export type WebhookFailure = Extract<ErrorCode, `webhook_${string}` | "inbox_unavailable">;

/** The event is settled: the provider may forget it. */
export function settled(outcome: EventOutcome): WebhookAnswer {
  return { status: 200, headers: { "content-type": "application/json" }, body: JSON.stringify({ outcome }) };
}

/**
 * Problem details (RFC 9457) without anything of the event or of the error's cause. Providers retry after 5xx and time-outs, and
 * give up on most 4xx.
 */
export function refused(code: WebhookFailure, headers: Readonly<Record<string, string>> = {}): WebhookAnswer {
  const status = statusOf(code);
  const { message: detail } = errorCatalogue[code];
  return {
    status,
    headers: { "content-type": "application/problem+json", "cache-control": "no-store", ...headers },
    body: JSON.stringify({ type: "about:blank", title: code.replaceAll("_", " "), status, code, detail }),
  };
}
