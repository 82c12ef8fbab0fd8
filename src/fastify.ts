import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";

import type { Once } from "./core/run-once.ts";
import type { OnceWithEffects } from "./effects/execution.ts";
import { answerOfProblem } from "./http/answer.ts";
import { bodyHeadersOf, givenCommand, parsedCommand } from "./http/command.ts";
import { serve } from "./http/engine.ts";
import type { Incoming } from "./http/exchange.ts";
import { fastifyExchange } from "./http/fastify-exchange.ts";
import { grouped } from "./http/headers.ts";
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
export type FastifyIdempotencyOptions<Tx> = IdempotencyOptions<Tx, FastifyRequest>;
/** Settings of a protected route. */
export type FastifyRouteOptions = RouteOptions<FastifyRequest>;

/** What Fastify calls. */
export type FastifyHandler<Req, Rep> = (this: FastifyInstance, request: Req, reply: Rep) => Promise<void>;

/** Protects a handler; the types of `request` and `reply` are those of the route it is given to. */
export interface FastifyIdempotent<Tx> {
  <Req = FastifyRequest, Rep = FastifyReply>(
    options: FastifyRouteOptions & { readonly key: "optional" },
    handler: (this: FastifyInstance, request: Req, reply: Rep, once: OptionalOnce<Tx>) => unknown,
  ): FastifyHandler<Req, Rep>;
  <Req = FastifyRequest, Rep = FastifyReply>(
    options: FastifyRouteOptions,
    handler: (this: FastifyInstance, request: Req, reply: Rep, once: Once<Tx>) => unknown,
  ): FastifyHandler<Req, Rep>;
  /** For a handler that calls other systems: `effect`, `phase` and `transaction` instead of `tx`. */
  withEffects<Req = FastifyRequest, Rep = FastifyReply>(
    options: EffectsRouteOptions<FastifyRouteOptions>,
    handler: (this: FastifyInstance, request: Req, reply: Rep, once: OnceWithEffects<Tx>) => unknown,
  ): FastifyHandler<Req, Rep>;
}

// The handler's own types of request and reply are those of its route, which Fastify vouches for.
type AnyHandler = (this: FastifyInstance, request: never, reply: never, once: never) => unknown;

/**
 * Protects routes of Fastify 5. Authentication, validation and every other hook before the handler run on a replay too.
 *
 * A handler returns a value, sends with `reply`, or writes to `reply.raw`. What it throws, or sends as an error, is
 * rendered by Fastify's own error handlers after the roll-back.
 * @throws IdemkitError `option_invalid`.
 */
export function idempotency<Tx>(binding: FastifyIdempotencyOptions<Tx>): FastifyIdempotent<Tx> {
  checkBinding(binding);
  const protect = (
    route: Route<Tx>,
    command: FastifyRouteOptions["command"],
    handler: AnyHandler,
  ): FastifyHandler<FastifyRequest, FastifyReply> => {
    return function protectedHandler(request, reply) {
      return new Promise((resolve, reject) => {
        const exchange = fastifyExchange<Tx>({
          route,
          request,
          reply,
          reject,
          invoke: (once) => handler.call(this, request as never, reply as never, once as never),
        });
        // After `reject` has handed an error over, the engine goes on; its own end changes nothing any more.
        void serve(route, incomingOf(request, binding.scope, command), exchange).then((sent) => {
          resolve(sent as undefined); // Fastify takes the reply, which it waits for, or nothing
        }, reject);
      });
    };
  };
  const idempotent = (options: FastifyRouteOptions, handler: AnyHandler): unknown =>
    protect(routeOf(binding, options, { handler }), options.command, handler);
  const withEffects = (options: EffectsRouteOptions<FastifyRouteOptions>, handler: AnyHandler): unknown =>
    protect(effectsRouteOf(binding, options, { handler }), options.command, handler);
  return Object.assign(idempotent, { withEffects }) as FastifyIdempotent<Tx>;
}

function incomingOf(
  request: FastifyRequest,
  scope: FastifyIdempotencyOptions<unknown>["scope"],
  command: FastifyRouteOptions["command"],
): Incoming {
  return {
    method: request.method,
    target: request.originalUrl,
    key: () => keyOfNode(request.raw),
    scope: () => scopeOf(scope, request),
    command: () => {
      if (command !== undefined) return givenCommand(command(request));
      return parsedCommand(bodyHeadersOf(request.raw), request.body);
    },
  };
}

/** Demands and checks an `Idempotency-Key` and hands it on, for handlers below that call `runOnce` themselves. */
export function requireIdempotencyKey<Req = FastifyRequest, Rep = FastifyReply>(
  handler: (this: FastifyInstance, request: Req, reply: Rep, given: { readonly key: string }) => unknown,
): FastifyHandler<Req, Rep> {
  checkFunction("handler", handler);
  return async function keyed(this: FastifyInstance, request: Req, reply: Rep) {
    // Whatever their precise types, they are Fastify's.
    const key = keyIn(request as FastifyRequest, reply as FastifyReply);
    const sent = key === undefined ? reply : await handler.call(this, request, reply, { key });
    return sent as undefined; // what Fastify is given is the handler's business
  };
}

function keyIn(request: FastifyRequest, reply: FastifyReply): string | undefined {
  try {
    return required(keyOfNode(request.raw));
  } catch (error) {
    const { status, headers, body } = answerOfProblem(problemOf(error));
    void reply.code(status).headers(grouped(headers)).send(body);
    return undefined;
  }
}
