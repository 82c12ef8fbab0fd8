import { hashOf } from "./request-hash.ts";

/** The part of `fetch` that is called; any function of this form can be wrapped. */
export type FetchLike<R extends ResponseLike = Response> = (url: string, init: PreparedInit) => Promise<R>;

/** The part of a response that is read. */
export interface ResponseLike {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  /** Gives the body to read without taking it from the caller. */
  clone(): { text(): Promise<string> };
}

/** What every try sends. */
export interface PreparedInit {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: Uint8Array<ArrayBuffer>;
  readonly signal: AbortSignal;
  readonly [other: string]: unknown;
}

/** A request whose every part is fixed before the first try. */
export interface PreparedRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: Uint8Array<ArrayBuffer>;
  /** Settings of `fetch` that are passed on as they are, such as `credentials`. */
  readonly rest: Readonly<Record<string, unknown>>;
  /** Tells an edited retry from a true one. */
  readonly hash: string;
}

function hrefOf(input: string | URL | Request): string {
  if (typeof input === "string") return input;
  return "url" in input ? input.url : input.href;
}

/** Reads streams and forms into bytes, once: a try that is repeated must send what the first one sent. */
export async function prepared(input: string | URL | Request, init: RequestInit): Promise<PreparedRequest> {
  const { signal: _signal, method: _method, headers: _headers, body: _body, ...rest } = init;
  const base = typeof input === "object" && "url" in input ? input : undefined;
  const url = hrefOf(input);
  const method = (init.method ?? base?.method ?? "GET").toUpperCase();
  const headers = new Headers(init.headers ?? base?.headers);
  const content = init.body ?? (base === undefined ? undefined : await base.clone().arrayBuffer());
  const bytes = await bytesOf(content, headers);
  const flat: Record<string, string> = {};
  headers.forEach((value, name) => (flat[name] = value));
  const hash = hashOf(`${method} ${url}\n`, bytes);
  return { url, method, headers: flat, rest, hash, ...(bytes === undefined ? {} : { body: bytes }) };
}

async function bytesOf(
  content: ConstructorParameters<typeof Response>[0],
  headers: Headers,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  if (content === undefined || content === null) return undefined;
  const read = new Response(content);
  const bytes = new Uint8Array(await read.arrayBuffer());
  const type = read.headers.get("content-type");
  if (type !== null && !headers.has("content-type")) headers.set("content-type", type);
  return bytes.length === 0 && typeof content !== "string" ? undefined : bytes;
}
