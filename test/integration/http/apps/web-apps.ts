import { createServer } from "node:http";
import type { Server } from "node:http";

import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import type { Context } from "hono";
import { compress } from "hono/compress";
import { setCookie } from "hono/cookie";
import { idempotency as fetchIdempotency } from "idemkit/fetch";
import type { FetchHandler } from "idemkit/fetch";
import { idempotency as honoIdempotency } from "idemkit/hono";

import { exchangeHeaders, listening, rendered } from "./framework.ts";
import type { Binding, Framework, Io, Route } from "./framework.ts";

export function webServer(handler: (request: Request) => Response | Promise<Response>): Server {
  const listener = getRequestListener(handler);
  return createServer((req, res) => void listener(req, res));
}

function streamOf(chunks: () => AsyncGenerator<string>): ReadableStream<Uint8Array> {
  const source = chunks();
  const encoder = new TextEncoder();
  return new ReadableStream({
    pull: async (controller) => {
      const { done, value } = await source.next();
      if (done === true) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
    cancel: async () => void (await source.return(undefined)),
  });
}

function headersOf(given: Record<string, string | string[]>): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(given)) {
    for (const each of [value].flat()) headers.append(name, each);
  }
  return headers;
}

function responses(body: unknown): Io {
  return {
    body,
    json: (status, value, headers = {}) => {
      return Response.json(value, { status, headers: headersOf(headers) });
    },
    empty: (status, headers = {}) => new Response(null, { status, headers }),
    bytes: (status, type, bytes) =>
      new Response(new Uint8Array(bytes), { status, headers: { "content-type": type } }),
    redirect: (status, location) => new Response(null, { status, headers: { location } }),
    stream: (status, type, chunks) =>
      new Response(streamOf(chunks), { status, headers: { "content-type": type } }),
    value: (value) => Response.json(value),
  };
}

async function bodyOf(request: { text(): Promise<string> }): Promise<unknown> {
  const text = await request.text();
  return text === "" ? undefined : (JSON.parse(text) as unknown);
}

function honoApp(routes: Readonly<Record<string, Route>>, binding: Binding): Hono {
  const app = new Hono();
  app.use(compress({ threshold: 100 }));
  app.use(async (c, next) => {
    for (const [name, value] of Object.entries(exchangeHeaders())) c.header(name, value);
    await next();
    setCookie(c, "session", "of-this-exchange");
  });
  app.onError((error, c) => {
    const { status, body } = rendered(error);
    return c.json(body, status as 500);
  });
  const idempotent = honoIdempotency({
    scope: (c: Context) => c.req.header("x-principal") ?? "alice",
    ...binding,
  });
  for (const [name, { script, options }] of Object.entries(routes)) {
    app.post(`/${name}`, idempotent({ operation: name, ...options }), async (c) => {
      return (await script(responses(await bodyOf(c.req)), c.var.once)) as Response;
    });
  }
  return app;
}

export const hono: Framework = {
  name: "Hono",
  rendersThrownErrors: true,
  rendersCommitErrors: false,
  runsAgain: false,
  givesNodeResponse: false,
  start: (routes, binding) => listening(webServer(honoApp(routes, binding).fetch)),
};

function fetchHandlers(
  routes: Readonly<Record<string, Route>>,
  binding: Binding,
): ReadonlyMap<string, FetchHandler> {
  const idempotent = fetchIdempotency({
    scope: (request) => request.headers.get("x-principal") ?? "alice",
    ...binding,
  });
  return new Map(
    Object.entries(routes).map(([name, { script, options }]) => [
      `/${name}`,
      idempotent({ operation: name, ...options }, async (request, once) => {
        return (await script(responses(await bodyOf(request)), once)) as Response;
      }),
    ]),
  );
}

/** The outside of a fetch-style handler: it renders what is thrown. */
async function outside(handler: FetchHandler | undefined, request: Request): Promise<Response> {
  const response = await inside(handler, request);
  const headers = new Headers(response.headers);
  for (const [name, value] of Object.entries(exchangeHeaders())) headers.set(name, value);
  headers.append("set-cookie", "session=of-this-exchange");
  return new Response(response.body, { status: response.status, headers });
}

async function inside(handler: FetchHandler | undefined, request: Request): Promise<Response> {
  if (handler === undefined) return new Response(null, { status: 404 });
  try {
    return await handler(request);
  } catch (error) {
    const { status, body } = rendered(error);
    return Response.json(body, { status });
  }
}

export const fetchStyle: Framework = {
  name: "fetch-style",
  rendersThrownErrors: false,
  rendersCommitErrors: false,
  runsAgain: true,
  givesNodeResponse: false,
  start: (routes, binding) => {
    const handlers = fetchHandlers(routes, binding);
    return listening(webServer((request) => outside(handlers.get(new URL(request.url).pathname), request)));
  },
};
