import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

import { idempotency } from "idemkit/node";
import type { NodeHandler } from "idemkit/node";

import { exchangeHeaders, listening, rendered } from "./framework.ts";
import type { Binding, Framework, Io, Route } from "./framework.ts";

type Handlers = Readonly<Record<string, NodeHandler<IncomingMessage, ServerResponse>>>;

function nodeHandlers(routes: Readonly<Record<string, Route>>, binding: Binding): Handlers {
  const idempotent = idempotency({
    scope: (req) => String(req.headers["x-principal"] ?? "alice"),
    onError: (error, _req, res) => {
      const { status, body } = rendered(error);
      sendJson(res as ServerResponse, status, body);
    },
    ...binding,
  });
  const entries = Object.entries(routes).map(([name, { script, options }]) => {
    const handler = idempotent({ operation: name, ...options }, (_req, res, once) =>
      script(ioOf(res, once.body), once),
    );
    return [`/${name}`, handler] as const;
  });
  return Object.fromEntries(entries);
}

function sendJson(res: ServerResponse, status: number, value: unknown, headers = {}): void {
  res.writeHead(status, { "content-type": "application/json", ...headers });
  res.end(JSON.stringify(value));
}

function ioOf(res: ServerResponse, body: unknown): Io {
  return {
    body,
    json: (status, value, headers) => sendJson(res, status, value, headers),
    empty: (status, headers = {}) => void res.writeHead(status, headers).end(),
    bytes: (status, type, bytes) => void res.writeHead(status, { "content-type": type }).end(bytes),
    redirect: (status, location) => void res.writeHead(status, { location }).end(),
    stream: (status, type, chunks) => {
      res.writeHead(status, { "content-type": type });
      return pipeline(Readable.from(chunks()), res);
    },
    value: (value) => value,
  };
}

export const nodeHttp: Framework = {
  name: "node:http",
  rendersThrownErrors: true,
  rendersCommitErrors: true,
  runsAgain: true,
  givesNodeResponse: true,
  start: (routes, binding) => {
    const handlers = nodeHandlers(routes, binding);
    const server = createServer((req, res) => {
      for (const [name, value] of Object.entries(exchangeHeaders())) res.setHeader(name, value);
      res.setHeader("set-cookie", "session=of-this-exchange");
      const handler = handlers[(req.url ?? "").split("?")[0] ?? ""];
      if (handler === undefined) res.writeHead(404).end();
      else void handler(req, res);
    });
    return listening(server);
  },
};
