import type { NextFunction, Request, Response } from "express";

import type { Once } from "./core/run-once.ts";
import type { OnceWithEffects } from "./effects/execution.ts";
import { answerOfProblem } from "./http/answer.ts";
import { bodyHeadersOf, givenCommand, isParsedToObject, parsedCommand } from "./http/command.ts";
import type { BodyHeaders } from "./http/command.ts";
import type { Command } from "./core/fingerprint.ts";
import { serve } from "./http/engine.ts";
import type { Incoming } from "./http/exchange.ts";
import { gatedExchange, sendOwn } from "./http/gated-exchange.ts";
import { copyOfInput } from "./http/input.ts";
import { keyOfNode, required } from "./http/key.ts";
import { problemOf } from "./http/problem.ts";
import { checkFunction } from "./internal/options.ts";
import { checkBinding, effectsRouteOf, routeOf, scopeOf } from "./http/route.ts";
import type {
  EffectsRouteOptions,
  IdempotencyOptions,
  OptionalOnce,
  Route,
  RouteOptions,
} from "./http/route.ts";

export type { OutcomeEvent } from "./http/route.ts";

/** Settings of {@link idempotency}. */
export type ExpressIdempotencyOptions<Tx> = IdempotencyOptions<Tx, Request>;
/** Settings of a protected route. */
export type ExpressRouteOptions = RouteOptions<Request>;

/** What Express calls. The promise never rejects: errors go to `next`, in Express 4 as in 5. */
export type ExpressHandler<Req, Res> = (req: Req, res: Res, next: NextFunction) => Promise<void>;

/** Protects a handler; the types of `req` and `res` are those of the route it is given to. */
export interface ExpressIdempotent<Tx> {
  <Req extends Request = Request, Res extends Response = Response>(
    options: ExpressRouteOptions & { readonly key: "optional" },
    handler: (req: Req, res: Res, once: OptionalOnce<Tx>) => unknown,
  ): ExpressHandler<Req, Res>;
  <Req extends Request = Request, Res extends Response = Response>(
    options: ExpressRouteOptions,
    handler: (req: Req, res: Res, once: Once<Tx>) => unknown,
  ): ExpressHandler<Req, Res>;
  /** For a handler that calls other systems: `effect`, `phase` and `transaction` instead of `tx`. */
  withEffects<Req extends Request = Request, Res extends Response = Response>(
    options: EffectsRouteOptions<ExpressRouteOptions>,
    handler: (req: Req, res: Res, once: OnceWithEffects<Tx>) => unknown,
  ): ExpressHandler<Req, Res>;
}

/**
 * Protects routes of Express 4 and 5. Install the parsers of bodies, authentication and validation before it: they run
 * on a replay too.
 *
 * A handler sends by hand, or returns a value that is sent as JSON. What it throws goes to `next` after the roll-back.
 * @throws IdemkitError `option_invalid`.
 */
export function idempotency<Tx>(binding: ExpressIdempotencyOptions<Tx>): ExpressIdempotent<Tx> {
  checkBinding(binding);
  const protect = (
    route: Route<Tx>,
    command: ExpressRouteOptions["command"],
    handler: AnyHandler,
  ): ExpressHandler<Request, Response> => {
    return async (req, res, next) => {
      let handed = false;
      const handOver = (error: unknown): void => {
        handed = true;
        next(error);
      };
      const incoming = incomingOf(req, binding.scope, command);
      try {
        await serve(route, incoming, exchangeOf({ route, req, res, handler, handOver }));
      } catch (error) {
        if (!handed) next(error);
      }
    };
  };
  const idempotent = (options: ExpressRouteOptions, handler: AnyHandler): unknown =>
    protect(routeOf(binding, options, { handler }), options.command, handler);
  const withEffects = (options: EffectsRouteOptions<ExpressRouteOptions>, handler: AnyHandler): unknown =>
    protect(effectsRouteOf(binding, options, { handler }), options.command, handler);
  return Object.assign(idempotent, { withEffects }) as ExpressIdempotent<Tx>;
}

// The handler's own types of request and response are those of its route, which Express vouches for.
type AnyHandler = (req: never, res: never, once: never) => unknown;

interface Served<Tx> {
  readonly route: Route<Tx>;
  readonly req: Request;
  readonly res: Response;
  readonly handler: AnyHandler;
  handOver(error: unknown): void;
}

function exchangeOf<Tx>({
  route,
  req,
  res,
  handler,
  handOver,
}: Served<Tx>): ReturnType<typeof gatedExchange<Tx>> {
  let spare: unknown;
  return gatedExchange(route, {
    res,
    handOver,
    invoke: (once) => handler(req as never, res as never, once as never),
    deliver: (value) => void (value instanceof Uint8Array ? res.send(Buffer.from(value)) : res.json(value)),
    prepare: (run) => {
      if (run === 1) spare = copyOfInput(req.body);
      else req.body = copyOfInput(spare);
    },
  });
}

function incomingOf(
  req: Request,
  scope: ExpressIdempotencyOptions<unknown>["scope"],
  command: ExpressRouteOptions["command"],
): Incoming {
  return {
    method: req.method,
    target: req.originalUrl,
    key: () => keyOfNode(req),
    scope: () => scopeOf(scope, req),
    command: () => (command === undefined ? commandInBody(req) : givenCommand(command(req))),
  };
}

function commandInBody(req: Request): Command {
  const headers = bodyHeadersOf(req);
  const body: unknown = req.body;
  return parsedCommand(headers, isEmptyObject(body) && !isParsed(req, headers) ? undefined : body);
}

/**
 * Whether `{}` is what a parser read. The parsers of Express 4 leave it for a body that they did not read, and mark one
 * that they did; those of Express 5 mark nothing, and leave `undefined`.
 */
function isParsed(req: Request, headers: BodyHeaders): boolean {
  if ("_body" in req) return req._body === true;
  return (req.readableDidRead || req.readableEnded) && isParsedToObject(headers);
}

function isEmptyObject(body: unknown): boolean {
  return typeof body === "object" && body !== null && !Array.isArray(body) && Object.keys(body).length === 0;
}

/** Demands and checks an `Idempotency-Key` and hands it on, for handlers below that call `runOnce` themselves. */
export function requireIdempotencyKey<Req extends Request = Request, Res extends Response = Response>(
  handler: (req: Req, res: Res, given: { readonly key: string }) => unknown,
): ExpressHandler<Req, Res> {
  checkFunction("handler", handler);
  return async (req, res, next) => {
    try {
      const key = keyIn(req, res);
      if (key !== undefined) await handler(req, res, { key });
    } catch (error) {
      next(error);
    }
  };
}

function keyIn(req: Request, res: Response): string | undefined {
  try {
    return required(keyOfNode(req));
  } catch (error) {
    sendOwn(res, answerOfProblem(problemOf(error)));
    return undefined;
  }
}
