import { refused } from "./answer.ts";
import type { WebhookAnswer } from "./answer.ts";
import { readAtMost } from "./read-body.ts";
import { consumed } from "./receive.ts";
import type { WebhookDelivery } from "./receive.ts";

/** What the forms of a webhook share. */
export interface Answering {
  readonly maxBodyBytes: number;
  answer(delivery: WebhookDelivery): Promise<WebhookAnswer>;
  readonly onError: (error: unknown) => void;
}

/** Answers a `Request`. */
export async function answerFetch(
  request: Request,
  { maxBodyBytes, answer, onError }: Answering,
): Promise<Response> {
  if (request.bodyUsed) {
    onError(consumed());
    return responseOf(refused("webhook_body_consumed"));
  }
  const body = await readAtMost(request.body ?? [], maxBodyBytes).catch(() => "cut off" as const);
  if (body === "cut off") return responseOf(refused("webhook_body_invalid"));
  if (body === undefined) return responseOf(refused("webhook_body_too_large"));
  const { method, headers } = request;
  return responseOf(await answer({ method, body, header: (name) => headers.get(name) ?? undefined }));
}

function responseOf({ status, headers, body }: WebhookAnswer): Response {
  return new Response(body, { status, headers });
}
