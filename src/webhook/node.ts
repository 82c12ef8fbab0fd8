import type { IncomingMessage, ServerResponse } from "node:http";

import { refused } from "./answer.ts";
import type { WebhookAnswer, WebhookFailure } from "./answer.ts";
import type { Answering } from "./fetch.ts";
import { readAtMost } from "./read-body.ts";
import { consumed } from "./receive.ts";

/** Answers a request of Node's http module, or of what is built on it. */
export async function answerNode(
  request: IncomingMessage,
  response: ServerResponse,
  { maxBodyBytes, answer, onError }: Answering,
): Promise<void> {
  // A client that goes away in the middle of its body has nobody to answer to.
  const body = await bodyOf(request, maxBodyBytes).catch(() => "webhook_body_invalid" as const);
  if (body === "webhook_body_consumed") onError(consumed());
  if (typeof body === "string") {
    send(response, refused(body));
    return;
  }
  const { method = "", headers } = request;
  const header = (name: string): string | undefined => {
    const value = headers[name];
    return Array.isArray(value) ? value.join(", ") : value;
  };
  send(response, await answer({ method, body, header }));
}

/** What a raw parser left, or the stream, if nobody has read it. */
async function bodyOf(request: IncomingMessage, maxBytes: number): Promise<Uint8Array | WebhookFailure> {
  const parsed: unknown = "body" in request ? request.body : undefined;
  if (parsed instanceof Uint8Array) return parsed;
  if (parsed !== undefined || request.readableDidRead) return "webhook_body_consumed";
  return (await readAtMost(request as AsyncIterable<Buffer>, maxBytes)) ?? "webhook_body_too_large";
}

function send(response: ServerResponse, { status, headers, body }: WebhookAnswer): void {
  // What is too large was not read to its end: the connection can't be used again.
  const close = status === 413 ? { connection: "close" } : {};
  response.writeHead(status, { ...headers, ...close }).end(body);
}
