import type { FastifyRequest, onRequestAsyncHookHandler } from "fastify";
import { ServiceError } from "../../../core/errors.ts";
import type { Principal, Role } from "../../../core/principal.ts";
import type { Authenticator } from "./authentication.ts";

const principals = new WeakMap<FastifyRequest, Principal>();

/** Who is calling. @throws Error on a route that has no authentication in front: a defect, never a request's fault */
export const principalOf = (request: FastifyRequest): Principal => {
  const principal = principals.get(request);
  if (principal === undefined) {
    throw new Error(`${request.method} ${request.routeOptions.url ?? "?"} has no authentication in front`);
  }
  return principal;
};

/** Runs before the body is read, and on every call: a replay is not served to a caller who has lost the right. */
export const authenticated =
  (authenticate: Authenticator): onRequestAsyncHookHandler =>
  async (request) => {
    principals.set(request, await authenticate(request.headers.authorization));
  };

/** One of `roles` will do. @throws ServiceError `role_missing` */
export const requireRoles =
  (...roles: readonly Role[]): onRequestAsyncHookHandler =>
  async (request) => {
    const { roles: held } = principalOf(request);
    if (!roles.some((role) => held.has(role))) {
      throw new ServiceError({
        kind: "forbidden",
        code: "role_missing",
        message: `this needs the role ${roles.join(" or ")}`,
      });
    }
  };
