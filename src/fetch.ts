import type { Command } from "./core/fingerprint.ts";
import type { Once } from "./core/run-once.ts";
import type { OnceWithEffects } from "./effects/execution.ts";
import { IdemkitError } from "./errors.ts";
import { answerOfProblem } from "./http/answer.ts";
import { bytesCommand, givenCommand } from "./http/command.ts";
import type { BodyHeaders } from "./http/command.ts";
import { serve } from "./http/engine.ts";
import type { Exchange, Incoming } from "./http/exchange.ts";
import { keyOfFetch, required } from "./http/key.ts";
import { problemOf } from "./http/problem.ts";
import { checkFunction } from "./internal/options.ts";
import { checkBinding, effectsRouteOf, routeOf, scopeOf } from "./http/route.ts";
import type {
  EffectsRouteOptions,
  IdempotencyOptions,
  OptionalOnce,
  ReadingRouteOptions,
  Route,
} from "./http/route.ts";
import { bytesOf, captureOf, checkAnnouncedLength, ownResponse, responseOf } from "./http/web.ts";

export type { OutcomeEvent } from "./http/route.ts";

/** Settings of {@link idempotency}. */
export type FetchIdempotencyOptions<Tx> = IdempotencyOptions<Tx, Request>;
/** Settings of a protected handler. */
export type FetchRouteOptions = ReadingRouteOptions<Request>;

/** A handler of the fetch style: a request in, a response out. */
export type FetchHandler = (request: Request) => Promise<Response>;

/** Protects a handler. */
export interface FetchIdempotent<Tx> {
  (
    options: FetchRouteOptions & { readonly key: "optional" },
    handler: (request: Request, once: OptionalOnce<Tx>) => Response | Promise<Response>,
  ): FetchHandler;
  (
    options: FetchRouteOptions,
    handler: (request: Request, once: Once<Tx>) => Response | Promise<Response>,
  ): FetchHandler;
  /** For a handler that calls other systems: `effect`, `phase` and `transaction` instead of `tx`. */
  withEffects(
    options: EffectsRouteOptions<FetchRouteOptions>,
    handler: (request: Request, once: OnceWithEffects<Tx>) => Response | Promise<Response>,
  ): FetchHandler;
}

/**
 * Protects handlers of the fetch style, for any runtime or router that has them.
 *
 * `rendersThrownErrors` is false here: what a handler throws is rolled back and thrown on to whoever called it, so that
 * it is never stored. A refusal that repeats shall get again is a returned `Response` with its status, and its writes are
 * the handler's business (`savepoint`).
 * @throws IdemkitError `option_invalid`.
 */
export function idempotency<Tx>(binding: FetchIdempotencyOptions<Tx>): FetchIdempotent<Tx> {
  checkBinding(binding);
  const protect = (
    route: Route<Tx>,
    command: FetchRouteOptions["command"],
    handler: AnyHandler,
  ): FetchHandler => {
    return (request) => {
      const input = inputOf(request, route, command);
      return serve(route, incomingOf(request, binding.scope, input), exchangeOf<Tx>(route, input, handler));
    };
  };
  const own = { options: ["maxRequestBytes"] };
  const idempotent = (options: FetchRouteOptions, handler: AnyHandler): unknown =>
    protect(routeOf(binding, options, { ...own, handler }), options.command, handler);
  const withEffects = (options: EffectsRouteOptions<FetchRouteOptions>, handler: AnyHandler): unknown =>
    protect(effectsRouteOf(binding, options, { ...own, handler }), options.command, handler);
  return Object.assign(idempotent, { withEffects }) as FetchIdempotent<Tx>;
}

type AnyHandler = (request: Request, once: never) => Response | Promise<Response>;

/** The request as the handler gets it in each run, and the command in it. */
interface Input {
  command(): Command | Promise<Command>;
  /** The request of a run; the first one gets the caller's own object. */
  next(): Request;
}

function inputOf(request: Request, route: Route<unknown>, command: FetchRouteOptions["command"]): Input {
  let runs = 0;
  let bytes: Buffer | undefined;
  return {
    command: async () => {
      if (request.bodyUsed && command === undefined) throw new IdemkitError("command_body_unread");
      checkAnnouncedLength(request.headers.get("content-length"), route.maxRequestBytes);
      if (request.bodyUsed || request.body === null) return commandIn(request, Buffer.alloc(0), command);
      bytes = await bytesOf(request.clone().body, route.maxRequestBytes, "command_too_large");
      return commandIn(request, bytes, command);
    },
    next: () => {
      runs += 1;
      return runs === 1 || bytes === undefined ? request : again(request, bytes);
    },
  };
}

function again({ url, method, headers, signal }: Request, bytes: Buffer): Request {
  return new Request(url, { method, headers, signal, body: new Uint8Array(bytes) });
}

function commandIn(
  request: Request,
  body: Buffer,
  command: FetchRouteOptions["command"],
): Command | Promise<Command> {
  return command === undefined
    ? bytesCommand(bodyHeaders(request.headers), body)
    : givenCommand(command(request.bodyUsed ? request : request.clone()));
}

/** The headers that tell of the body. */
function bodyHeaders(headers: Headers): BodyHeaders {
  return {
    contentLength: headers.get("content-length") ?? undefined,
    transferEncoding: headers.get("transfer-encoding") ?? undefined,
    contentType: headers.get("content-type") ?? undefined,
  };
}

function incomingOf(
  request: Request,
  scope: FetchIdempotencyOptions<unknown>["scope"],
  input: Input,
): Incoming {
  return {
    method: request.method,
    target: request.url,
    key: () => keyOfFetch(request.headers),
    scope: () => scopeOf(scope, request),
    command: () => input.command(),
  };
}

function exchangeOf<Tx>(route: Route<Tx>, input: Input, handler: AnyHandler): Exchange<Tx, Response> {
  let pending = false;
  return {
    attempt: async (once) => {
      pending = true;
      try {
        return await captureOf(await handler(input.next(), once as never), route.maxResponseBytes);
      } finally {
        pending = false;
      }
    },
    pending: () => pending,
    canRunAgain: () => true,
    render: async (error) => {
      throw error;
    },
    engaged: () => false,
    sendCapture: responseOf,
    sendAnswer: ownResponse,
  };
}

/** Demands and checks an `Idempotency-Key` and hands it on, for handlers below that call `runOnce` themselves. */
export function requireIdempotencyKey(
  handler: (request: Request, given: { readonly key: string }) => Response | Promise<Response>,
): FetchHandler {
  checkFunction("handler", handler);
  return async (request) => {
    let key: string;
    try {
      key = required(keyOfFetch(request.headers));
    } catch (error) {
      return ownResponse(answerOfProblem(problemOf(error)));
    }
    return handler(request, { key });
  };
}
