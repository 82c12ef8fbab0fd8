import { createServer } from "node:http";
import { createRequire } from "node:module";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

import compression from "compression";
import express from "express";
import type { ErrorRequestHandler, Express, Request, Response } from "express";
import session from "express-session";
import { idempotency } from "idemkit/express";

import { exchangeHeaders, listening, rendered } from "./framework.ts";
import type { Binding, Framework, Io, Route } from "./framework.ts";

// Its types are those of Express 5 but for what the suite doesn't use.
const express4 = createRequire(import.meta.url)("express4") as typeof express;

const renderError: ErrorRequestHandler = (error, _req, res, _next) => {
  const { status, body } = rendered(error);
  res.status(status).json(body);
};

function expressApp(
  make: typeof express,
  routes: Readonly<Record<string, Route>>,
  binding: Binding,
  extend: (app: Express) => void = () => {},
): Express {
  const app = make();
  app.use(compression({ threshold: 100 }));
  app.use(session({ secret: "secret", resave: false, saveUninitialized: true }));
  app.use((_req, res, next) => {
    res.set(exchangeHeaders());
    next();
  });
  app.use(make.json({ strict: false }), make.urlencoded({ extended: true }), make.raw());
  extend(app);
  const idempotent = idempotency({ scope: (req) => req.get("x-principal") ?? "alice", ...binding });
  for (const [name, { script, options }] of Object.entries(routes)) {
    app.post(
      `/${name}`,
      idempotent({ operation: name, ...options }, (req, res, once) => script(ioOf(req, res), once)),
    );
  }
  app.use(renderError);
  return app;
}

function ioOf(req: Request, res: Response): Io {
  return {
    body: req.body,
    json: (status, value, headers = {}) => res.status(status).set(headers).json(value),
    empty: (status, headers = {}) => res.status(status).set(headers).end(),
    bytes: (status, type, body) => res.status(status).type(type).send(body),
    redirect: (status, location) => res.redirect(status, location),
    stream: (status, type, chunks) => {
      res.status(status).type(type);
      return pipeline(Readable.from(chunks()), res);
    },
    value: (value) => value,
  };
}

function framework(name: string, make: typeof express): Framework {
  return {
    name,
    rendersThrownErrors: true,
    rendersCommitErrors: true,
    runsAgain: true,
    givesNodeResponse: true,
    start: (routes, binding) => listening(createServer(expressApp(make, routes, binding))),
  };
}

export const expressFive: Framework = framework("Express 5", express);
export const expressFour: Framework = framework("Express 4", express4);
