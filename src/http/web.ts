import type { OutgoingHttpHeaders } from "node:http";

import { IdemkitError } from "../errors.ts";
import type { Capture, OwnAnswer } from "./answer.ts";
import { unsupported } from "./gate-state.ts";
import { grouped } from "./headers.ts";
import { hasNoContent } from "./status.ts";

/**
 * Reads a fetch-style response to its end, so that nothing of it leaves before the commit.
 * @throws IdemkitError `response_too_large`, `response_unsupported`; whatever the body's stream fails with.
 */
export async function captureOf(response: Response, maxBytes: number): Promise<Capture> {
  const { status, statusText } = response;
  if (status < 200 || status > 599) throw unsupported(`status ${status}`);
  const headers = headersOf(response.headers);
  if ("trailer" in headers) throw unsupported("trailers");
  const body = await bytesOf(response.body, maxBytes, "response_too_large");
  return { status, statusMessage: statusText, headers, body };
}

function headersOf(given: Headers): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {};
  for (const [name, value] of given) if (name !== "set-cookie") headers[name] = value;
  const cookies = given.getSetCookie();
  if (cookies.length > 0) headers["set-cookie"] = cookies;
  return headers;
}

/**
 * The bytes of a stream.
 * @throws IdemkitError of the given code where they are too many; the stream is cancelled then.
 */
export async function bytesOf(
  stream: ReadableStream<Uint8Array> | null,
  maxBytes: number,
  tooLarge: "response_too_large" | "command_too_large",
): Promise<Buffer> {
  if (stream === null) return Buffer.alloc(0);
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of stream) {
    size += chunk.byteLength;
    if (size > maxBytes) throw new IdemkitError(tooLarge);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** A response with the same status, headers and bytes. */
export function responseOf({ status, statusMessage = "", headers, body }: Capture): Response {
  const list = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || name === "transfer-encoding" || name === "content-length") continue;
    for (const each of Array.isArray(value) ? value : [String(value)]) list.append(name, each);
  }
  if (!hasNoContent(status)) list.set("content-length", String(body.length));
  const content = body.length === 0 ? null : new Uint8Array(body);
  return new Response(content, { status, statusText: statusMessage, headers: list });
}

/** An answer of idemkit's own as a response. */
export function ownResponse({ status, headers, body }: OwnAnswer): Response {
  return responseOf({ status, headers: grouped(headers), body: Buffer.from(body) });
}

/** A body that says in advance that it is too large is not read at all. */
export function checkAnnouncedLength(contentLength: string | null | undefined, maxBytes: number): void {
  if (Number(contentLength ?? 0) > maxBytes) throw new IdemkitError("command_too_large");
}
