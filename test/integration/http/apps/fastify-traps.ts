import { Readable } from "node:stream";

import multipart from "@fastify/multipart";
import type { FastifyInstance } from "fastify";
import type { PostgresDatabase } from "idemkit";
import { idempotency, requireIdempotencyKey } from "idemkit/fastify";
import type { PoolClient } from "pg";

import { HttpError } from "./framework.ts";
import { pay } from "../scenarios.ts";

/** Routes that do what was seen to break other libraries, each in Fastify's own way. */
export async function trapRoutes(
  app: FastifyInstance,
  database: PostgresDatabase<PoolClient>,
  finished: string[],
): Promise<void> {
  const idempotent = idempotency({ database, scope: "shared" });
  app.addHook("onResponse", async (request) => void finished.push(request.url));
  app.addContentTypeParser("application/unread", (_request, _payload, done) => done(null));
  await app.register(multipart);

  app.post(
    "/hijack",
    idempotent({ operation: "hijack" }, async (_request, reply, once) => {
      reply.hijack();
      await pay(once, "hijack");
      reply.raw.writeHead(201, { "x-raw": "1", "content-type": "text/plain" }).end("raw");
    }),
  );
  app.post(
    "/hijack-throw",
    idempotent({ operation: "hijack-throw" }, async (_request, reply, once) => {
      await pay(once, "hijack-throw");
      reply.hijack();
      throw new HttpError(422, "nobody renders this");
    }),
  );
  app.post(
    "/raw-end",
    idempotent({ operation: "raw-end" }, async (_request, reply, once) => {
      await pay(once, "raw-end");
      reply.raw.end("raw");
      return reply;
    }),
  );
  app.post(
    "/hints",
    idempotent({ operation: "hints" }, async (_request, reply, once) => {
      reply.writeEarlyHints({ link: "</style.css>; rel=preload" });
      reply.raw.writeProcessing();
      await pay(once, "hints");
      return { ok: true };
    }),
  );
  app.post(
    "/sends-error",
    idempotent({ operation: "sends-error" }, async (_request, reply, once) => {
      await pay(once, "sends-error");
      return reply.send(new HttpError(422, "sent"));
    }),
  );
  let conflicts = 0;
  app.post(
    "/sends-conflict",
    idempotent({ operation: "sends-conflict" }, async (_request, reply, once) => {
      await pay(once, "sends-conflict");
      conflicts += 1;
      if (conflicts > 1) return { conflicts };
      return once.tx.query("select serialization_failure()").catch((error: unknown) => reply.send(error));
    }),
  );
  app.post(
    "/callback-error",
    idempotent({ operation: "callback-error" }, (_request, reply, once) => {
      void pay(once, "callback-error").then(() => reply.send(new HttpError(422, "sent later")));
    }),
  );
  app.post(
    "/throws-after-sending",
    idempotent({ operation: "throws-after-sending" }, async (_request, reply, once) => {
      await pay(once, "throws-after-sending");
      void reply.code(201).header("x-sent", "1").send({ sent: true });
      throw new HttpError(422, "after sending");
    }),
  );
  app.post(
    "/throws-after-code",
    idempotent({ operation: "throws-after-code" }, async (_request, reply) => {
      void reply.code(402).header("x-before", "1");
      throw new Error("natural");
    }),
  );
  app.post(
    "/trailer",
    idempotent({ operation: "trailer" }, async (_request, reply, once) => {
      await pay(once, "trailer");
      reply.trailer("x-sum", (_reply, _payload, done) => done(null, "1"));
      return { ok: true };
    }),
  );
  app.post(
    "/broken-stream",
    idempotent({ operation: "broken-stream" }, async (_request, reply, once) => {
      await pay(once, "broken-stream");
      const source = new Readable({ read: () => {} });
      queueMicrotask(() => source.destroy(new HttpError(422, "before the first byte")));
      return reply.send(source);
    }),
  );
  app.post(
    "/response-object",
    idempotent({ operation: "response-object" }, async (_request, _reply, once) => {
      await pay(once, "response-object");
      return new Response("from fetch", { status: 202, headers: { etag: '"7"' } });
    }),
  );
  app.post(
    "/schema",
    {
      schema: {
        response: { 200: { type: "object", required: ["id"], properties: { id: { type: "string" } } } },
      },
    },
    idempotent({ operation: "schema" }, async (_request, _reply, once) => {
      await pay(once, "schema");
      return {};
    }),
  );
  await app.register(async (scope) => {
    scope.setErrorHandler((error, _request, reply) =>
      reply
        .code(418)
        .header("x-nested", "1")
        .send({ nested: String(error) }),
    );
    scope.post(
      "/nested",
      idempotent({ operation: "nested" }, async (_request, _reply, once) => {
        await pay(once, "nested");
        throw new Error("inside");
      }),
    );
    scope.post(
      "/nested-schema",
      {
        schema: {
          response: { 200: { type: "object", required: ["id"], properties: { id: { type: "string" } } } },
        },
      },
      idempotent({ operation: "nested-schema" }, async (_request, _reply, once) => {
        await pay(once, "nested-schema");
        return {};
      }),
    );
  });
  await app.register(async (scope) => {
    scope.addHook("onSend", async (request, _reply, payload) => {
      await Promise.resolve();
      if (request.headers["x-fail"] !== undefined) throw new Error("a late hook");
      return typeof payload === "string" ? payload.replace("{", `{"hook":${Math.random()},`) : payload;
    });
    scope.post(
      "/hooked",
      idempotent({ operation: "hooked" }, async (_request, reply, once) => {
        return reply
          .code(201)
          .header("location", "/hooked/1")
          .send({ id: await pay(once, "hooked") });
      }),
    );
  });
  app.post(
    "/unread",
    idempotent({ operation: "unread" }, async () => ({})),
  );
  app.post(
    "/upload",
    idempotent(
      { operation: "upload", command: async (request) => request.headers["x-digest"] as string },
      async (request, _reply, once) => {
        const file = await request.file();
        return { id: await pay(once, "upload"), name: file?.filename };
      },
    ),
  );
  app.post(
    "/upload-undeclared",
    idempotent({ operation: "upload-undeclared" }, async () => ({})),
  );
  app.get(
    "/read",
    idempotent({ operation: "read" }, async () => ({})),
  );
  app.post(
    "/keyed",
    requireIdempotencyKey(async (_request, _reply, { key }) => ({ key })),
  );
}
