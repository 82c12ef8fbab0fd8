import { request } from "node:http";
import type { ClientRequest, IncomingHttpHeaders } from "node:http";
import { brotliDecompressSync, gunzipSync } from "node:zlib";

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Names and values in turn, as they came. */
  readonly rawHeaders: readonly string[];
  /** The bytes after the content-encoding. */
  readonly body: Buffer;
  readonly text: string;
  json(): Record<string, unknown>;
}

export interface CallOptions {
  readonly key?: string | string[];
  /** Sent as JSON; bytes and text are sent as they are. */
  readonly body?: unknown;
  readonly method?: string;
  readonly headers?: Record<string, string | string[]>;
  /** Told of the request, to break it off. */
  readonly onRequest?: (request: ClientRequest) => void;
}

/** One request over a connection of its own. */
export function call(url: string, options: CallOptions = {}): Promise<Answer> {
  const { key, body, method = "POST", headers = {}, onRequest } = options;
  const content = contentOf(body);
  return new Promise((resolve, reject) => {
    const sent = request(url, {
      method,
      agent: false,
      headers: {
        ...(content === undefined
          ? {}
          : { "content-type": "application/json", "content-length": content.length }),
        ...(key === undefined ? {} : { "idempotency-key": key }),
        ...headers,
      },
    });
    sent.on("error", reject);
    sent.on("response", (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        const bytes = decoded(Buffer.concat(chunks), response.headers["content-encoding"]);
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          rawHeaders: response.rawHeaders,
          body: bytes,
          text: bytes.toString("utf8"),
          json: () => JSON.parse(bytes.toString("utf8")) as never,
        });
      });
    });
    onRequest?.(sent);
    sent.end(content);
  });
}

function contentOf(body: unknown): Buffer | undefined {
  if (body === undefined) return undefined;
  if (body instanceof Uint8Array) return Buffer.from(body);
  return Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
}

function decoded(body: Buffer, coding: string | undefined): Buffer {
  if (coding === "gzip") return gunzipSync(body);
  if (coding === "br") return brotliDecompressSync(body);
  if (coding !== undefined) throw new Error(`the client did not ask for ${coding}`);
  return body;
}
