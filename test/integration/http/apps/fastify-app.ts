import { Readable } from "node:stream";

import compress from "@fastify/compress";
import cookie from "@fastify/cookie";
import session from "@fastify/session";
import fastify from "fastify";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { idempotency } from "idemkit/fastify";

import { exchangeHeaders, rendered } from "./framework.ts";
import type { Binding, Framework, Io, Route } from "./framework.ts";

export async function fastifyApp(
  routes: Readonly<Record<string, Route>>,
  binding: Binding,
  extend: (app: FastifyInstance) => void = () => {},
): Promise<FastifyInstance> {
  const app = fastify({ forceCloseConnections: true });
  await app.register(compress, { threshold: 100 });
  await app.register(cookie);
  await app.register(session, {
    secret: "a secret of more than thirty-two characters",
    cookie: { secure: false },
  });
  app.addHook("onRequest", async (_request, reply) => {
    reply.headers(exchangeHeaders());
  });
  app.setErrorHandler((error, _request, reply) => {
    const { status, body } = rendered(error);
    return reply.code(status).send(body);
  });
  extend(app);
  const idempotent = idempotency({
    scope: (request) => String(request.headers["x-principal"] ?? "alice"),
    ...binding,
  });
  for (const [name, { script, options }] of Object.entries(routes)) {
    app.post(
      `/${name}`,
      idempotent({ operation: name, ...options }, (request, reply, once) =>
        script(ioOf(request, reply), once),
      ),
    );
  }
  return app;
}

function ioOf(request: FastifyRequest, reply: FastifyReply): Io {
  return {
    body: request.body,
    json: (status, value, headers = {}) => reply.code(status).headers(headers).send(value),
    empty: (status, headers = {}) => reply.code(status).headers(headers).send(),
    bytes: (status, type, body) => reply.code(status).type(type).send(body),
    redirect: (status, location) => reply.redirect(location, status),
    stream: (status, type, chunks) => reply.code(status).type(type).send(Readable.from(chunks())),
    value: (value) => value,
  };
}

export const fastify5: Framework = {
  name: "Fastify 5",
  rendersThrownErrors: true,
  rendersCommitErrors: true,
  runsAgain: true,
  givesNodeResponse: true,
  start: async (routes, binding) => {
    const app = await fastifyApp(routes, binding);
    const url = await app.listen({ port: 0, host: "127.0.0.1" });
    return { url, close: () => app.close() };
  },
};
