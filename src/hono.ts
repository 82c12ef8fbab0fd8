import type { Context, MiddlewareHandler } from "hono";

import type { Command } from "./core/fingerprint.ts";
import type { Once } from "./core/run-once.ts";
import type { OnceWithEffects } from "./effects/execution.ts";
import { IdemkitError } from "./errors.ts";
import { bytesCommand, givenCommand, isJson } from "./http/command.ts";
import type { BodyHeaders } from "./http/command.ts";
import { serve } from "./http/engine.ts";
import type { Incoming } from "./http/exchange.ts";
import { honoExchange } from "./http/hono-exchange.ts";
import { keyOfFetch, required } from "./http/key.ts";
import { problemOf } from "./http/problem.ts";
import { checkBinding, effectsRouteOf, routeOf, scopeOf } from "./http/route.ts";
import type {
  EffectsRouteOptions,
  IdempotencyOptions,
  OptionalOnce,
  ReadingRouteOptions,
  Route,
} from "./http/route.ts";
import { checkAnnouncedLength } from "./http/web.ts";

export type { OutcomeEvent } from "./http/route.ts";

/** Settings of {@link idempotency}. */
export type HonoIdempotencyOptions<Tx> = IdempotencyOptions<Tx, Context>;
/** Settings of a protected route. */
export type HonoRouteOptions = ReadingRouteOptions<Context>;

/** Makes the middleware of a route; what follows it finds `c.var.once`. */
export interface HonoIdempotent<Tx> {
  (
    options: HonoRouteOptions & { readonly key: "optional" },
  ): MiddlewareHandler<{ Variables: { once: OptionalOnce<Tx> } }>;
  (options: HonoRouteOptions): MiddlewareHandler<{ Variables: { once: Once<Tx> } }>;
  /** For handlers that call other systems: `c.var.once` has `effect`, `phase` and `transaction` instead of `tx`. */
  withEffects(
    options: EffectsRouteOptions<HonoRouteOptions>,
  ): MiddlewareHandler<{ Variables: { once: OnceWithEffects<Tx> } }>;
}

/**
 * Protects routes of Hono 4: `app.post(path, idempotent({ operation }), (c) => … c.var.once.tx …)`. Install
 * authentication and validation before it: they run on a replay too. It runs the rest of the chain once and cannot
 * run it again, so that a serialization failure is answered 503 `same-key`.
 * @throws IdemkitError `option_invalid`.
 */
export function idempotency<Tx>(binding: HonoIdempotencyOptions<Tx>): HonoIdempotent<Tx> {
  checkBinding(binding);
  const protect = (route: Route<Tx>, command: HonoRouteOptions["command"]): MiddlewareHandler => {
    return async function idempotentRoute(c, next) {
      const incoming = incomingOf(c, binding.scope, () =>
        commandOfContext(c, command, route.maxRequestBytes),
      );
      await serve(route, incoming, honoExchange<Tx>(route, c, next));
    };
  };
  const own = { options: ["maxRequestBytes"] };
  const idempotent = (options: HonoRouteOptions): unknown =>
    protect(routeOf(binding, options, own), options.command);
  const withEffects = (options: EffectsRouteOptions<HonoRouteOptions>): unknown =>
    protect(effectsRouteOf(binding, options, own), options.command);
  return Object.assign(idempotent, { withEffects }) as HonoIdempotent<Tx>;
}

function incomingOf(
  c: Context,
  scope: HonoIdempotencyOptions<unknown>["scope"],
  command: Incoming["command"],
): Incoming {
  return {
    method: c.req.method,
    target: c.req.url,
    key: () => keyOfFetch(c.req.raw.headers),
    scope: () => scopeOf(scope, c),
    command,
  };
}

async function commandOfContext(
  c: Context,
  command: HonoRouteOptions["command"],
  maxBytes: number,
): Promise<Command> {
  checkAnnouncedLength(c.req.header("content-length"), maxBytes);
  if (command !== undefined) return givenCommand(command(c));
  const headers: BodyHeaders = {
    contentLength: c.req.header("content-length"),
    transferEncoding: c.req.header("transfer-encoding"),
    contentType: c.req.header("content-type"),
  };
  const bytes = new Uint8Array(await bodyOf(c, headers));
  if (bytes.length > maxBytes) throw new IdemkitError("command_too_large");
  return bytesCommand(headers, bytes);
}

/** Caches of Hono from which the bytes of a body can be had again. */
const readable = new Set(["arrayBuffer", "text", "json", "blob"]);

/** The body, in a way that leaves it to the handler: through Hono's cache, or from a copy where the cache would lose it. */
async function bodyOf(c: Context, headers: BodyHeaders): Promise<ArrayBuffer> {
  const { req } = c;
  if (isJson(headers) && !req.raw.bodyUsed) return Uint8Array.from(Buffer.from(await req.text())).buffer;
  if (!req.raw.bodyUsed) return req.raw.clone().arrayBuffer();
  if (Object.keys(req.bodyCache).some((name) => readable.has(name))) return req.arrayBuffer();
  throw new IdemkitError("command_body_unread", {
    detail: "read it through c.req, before or after this middleware",
  });
}

/** Demands and checks an `Idempotency-Key`, for handlers below that call `runOnce` with `c.var.idempotencyKey`. */
export function requireIdempotencyKey(): MiddlewareHandler<{ Variables: { idempotencyKey: string } }> {
  return async function keyed(c, next) {
    let key: string;
    try {
      key = required(keyOfFetch(c.req.raw.headers));
    } catch (error) {
      const { status, headers, body } = problemOf(error);
      return c.body(JSON.stringify(body), status as 400, headers);
    }
    c.set("idempotencyKey", key);
    return next();
  };
}
