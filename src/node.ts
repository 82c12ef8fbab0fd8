import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";

import type { Once } from "./core/run-once.ts";
import type { OnceWithEffects } from "./effects/execution.ts";
import { answerOfProblem } from "./http/answer.ts";
import { givenCommand } from "./http/command.ts";
import type { GivenCommand } from "./http/command.ts";
import { serve } from "./http/engine.ts";
import type { Incoming } from "./http/exchange.ts";
import { gatedExchange, sendOwn } from "./http/gated-exchange.ts";
import { keyOfNode, required } from "./http/key.ts";
import { nodeBody } from "./http/node-body.ts";
import type { NodeBody } from "./http/node-body.ts";
import { problemOf } from "./http/problem.ts";
import { checkFunction } from "./internal/options.ts";
import { checkBinding, effectsRouteOf, routeOf, scopeOf } from "./http/route.ts";
import type {
  EffectsRouteOptions,
  HandlerOnce,
  IdempotencyOptions,
  OptionalOnce,
  ReadingRouteOptions,
  Route,
} from "./http/route.ts";

export type { OutcomeEvent } from "./http/route.ts";

/** A request of `node:http`, or of `node:http2` in its compatible form. */
export type NodeRequest = IncomingMessage | Http2ServerRequest;
/** Its response. */
export type NodeResponse = ServerResponse | Http2ServerResponse;

/** Renders what a handler threw; it must end the response. */
export type NodeErrorHandler = (error: unknown, req: NodeRequest, res: NodeResponse) => unknown;

/** Settings of {@link idempotency}. */
export interface NodeIdempotencyOptions<Tx> extends IdempotencyOptions<Tx, NodeRequest> {
  /**
   * Renders what handlers throw, after the roll-back. A definitive answer is stored.
   * @defaultValue problem details: of idemkit's errors with their code, a bare 500 for anything else
   */
  readonly onError?: NodeErrorHandler;
}

/** Settings of a protected handler. */
export type NodeRouteOptions = ReadingRouteOptions<NodeRequest>;

/** What a handler gets beside its transaction: the body, which idemkit has read. */
export interface ReadBody {
  /** Parsed where it is JSON, bytes otherwise, `undefined` where there is none; fresh for each run. */
  readonly body: unknown;
}

/** What `http.createServer` or a router calls; the promise never rejects. */
export type NodeHandler<Req, Res> = (req: Req, res: Res) => Promise<void>;

/** Protects a handler. */
export interface NodeIdempotent<Tx> {
  <Req extends NodeRequest = IncomingMessage, Res extends NodeResponse = ServerResponse>(
    options: NodeRouteOptions & { readonly key: "optional" },
    handler: (req: Req, res: Res, once: OptionalOnce<Tx> & ReadBody) => unknown,
  ): NodeHandler<Req, Res>;
  <Req extends NodeRequest = IncomingMessage, Res extends NodeResponse = ServerResponse>(
    options: NodeRouteOptions,
    handler: (req: Req, res: Res, once: Once<Tx> & ReadBody) => unknown,
  ): NodeHandler<Req, Res>;
  /** For a handler that calls other systems: `effect`, `phase` and `transaction` instead of `tx`. */
  withEffects<Req extends NodeRequest = IncomingMessage, Res extends NodeResponse = ServerResponse>(
    options: EffectsRouteOptions<NodeRouteOptions>,
    handler: (req: Req, res: Res, once: OnceWithEffects<Tx> & ReadBody) => unknown,
  ): NodeHandler<Req, Res>;
}

type AnyHandler = (req: never, res: never, once: never) => unknown;

/**
 * Protects handlers of `node:http`. The request's body is read here, unless a parser has put it into `req.body`.
 *
 * A handler sends by hand, or returns a value that is sent as JSON.
 * @throws IdemkitError `option_invalid`.
 */
export function idempotency<Tx>(binding: NodeIdempotencyOptions<Tx>): NodeIdempotent<Tx> {
  checkBinding(binding, ["onError"]);
  const renderError = errorRenderer(binding.onError);
  const protect = (
    route: Route<Tx>,
    command: NodeRouteOptions["command"],
    handler: AnyHandler,
  ): NodeHandler<IncomingMessage, ServerResponse> => {
    return async (req, res) => {
      const body = nodeBody(req, route.maxRequestBytes);
      const incoming = incomingOf(req, binding.scope, command, body);
      const invoke = (once: HandlerOnce<Tx>): unknown =>
        handler(req as never, res as never, withBody(once, body.next()) as never);
      const handOver = (error: unknown): void => void renderError(error, req, res);
      try {
        await serve(route, incoming, exchangeOf({ route, res, invoke, handOver }));
      } catch (error) {
        await renderError(error, req, res);
      }
    };
  };
  const own = { options: ["maxRequestBytes"] };
  const idempotent = (options: NodeRouteOptions, handler: AnyHandler): unknown =>
    protect(routeOf(binding, options, { ...own, handler }), options.command, handler);
  const withEffects = (options: EffectsRouteOptions<NodeRouteOptions>, handler: AnyHandler): unknown =>
    protect(effectsRouteOf(binding, options, { ...own, handler }), options.command, handler);
  return Object.assign(idempotent, { withEffects }) as NodeIdempotent<Tx>;
}

function withBody<Tx>(once: HandlerOnce<Tx>, body: unknown): HandlerOnce<Tx> & ReadBody {
  return Object.defineProperties(once, { body: { value: body, enumerable: true } }) as HandlerOnce<Tx> &
    ReadBody;
}

interface Served<Tx> {
  readonly route: Route<Tx>;
  readonly res: ServerResponse;
  invoke(once: HandlerOnce<Tx>): unknown;
  handOver(error: unknown): void;
}

function exchangeOf<Tx>({ route, res, invoke, handOver }: Served<Tx>): ReturnType<typeof gatedExchange<Tx>> {
  return gatedExchange(route, {
    res,
    invoke,
    handOver,
    prepare: () => {},
    deliver: (value) => sendValue(res, value),
  });
}

/** Bytes as they are, anything else as JSON. */
function sendValue(res: ServerResponse, value: unknown): void {
  const bytes = value instanceof Uint8Array;
  if (!res.hasHeader("content-type")) {
    res.setHeader("content-type", bytes ? "application/octet-stream" : "application/json; charset=utf-8");
  }
  res.end(bytes ? value : JSON.stringify(value));
}

function errorRenderer(onError: NodeErrorHandler = sendProblem) {
  return async (error: unknown, req: NodeRequest, res: ServerResponse): Promise<void> => {
    try {
      await onError(error, req, res);
    } catch (cause) {
      if (res.headersSent) res.destroy(cause instanceof Error ? cause : undefined);
      else sendProblem(error, req, res);
    }
  };
}

function sendProblem(error: unknown, _req: NodeRequest, res: NodeResponse): void {
  sendOwn(res as ServerResponse, answerOfProblem(problemOf(error)));
}

function incomingOf(
  req: IncomingMessage,
  scope: NodeIdempotencyOptions<unknown>["scope"],
  command: ((request: NodeRequest) => GivenCommand | Promise<GivenCommand>) | undefined,
  body: NodeBody,
): Incoming {
  return {
    method: req.method ?? "",
    target: originalUrlOf(req),
    key: () => keyOfNode(req),
    scope: () => scopeOf(scope, req),
    command: async () => {
      const known = await body.command(command !== undefined);
      return command === undefined ? known : givenCommand(command(req));
    },
  };
}

/** Routers of the Connect family cut `url` and keep the whole beside it. */
function originalUrlOf(req: IncomingMessage): string {
  return "originalUrl" in req && typeof req.originalUrl === "string" ? req.originalUrl : (req.url ?? "");
}

/** Demands and checks an `Idempotency-Key` and hands it on, for handlers below that call `runOnce` themselves. */
export function requireIdempotencyKey<
  Req extends NodeRequest = IncomingMessage,
  Res extends NodeResponse = ServerResponse,
>(
  handler: (req: Req, res: Res, given: { readonly key: string }) => unknown,
): (req: Req, res: Res) => unknown {
  checkFunction("handler", handler);
  return (req, res) => {
    let key: string;
    try {
      key = required(keyOfNode(req));
    } catch (error) {
      sendProblem(error, req, res);
      return undefined;
    }
    return handler(req, res, { key });
  };
}
