import { join } from "node:path";
import { Readable } from "node:stream";

import type express from "express";
import type { ErrorRequestHandler, Express } from "express";
import session from "express-session";
import type { PostgresDatabase } from "idemkit";
import { idempotency, requireIdempotencyKey } from "idemkit/express";
import type { PoolClient } from "pg";

import { HttpError } from "./framework.ts";
import { pay } from "../scenarios.ts";
import type { Barrier } from "../scenarios.ts";

export interface Traps {
  readonly make: typeof express;
  readonly database: PostgresDatabase<PoolClient>;
  /** Holds `receipt.txt`. */
  readonly folder: string;
  /** What handlers were told of their own `finish`. */
  readonly finished: string[];
  /** Where a handler waits that answers too late. */
  late(): Barrier;
}

/** Routes that do what was seen to break other libraries, each in Express's own way. */
export function trapApp({ make, database, folder, finished, late }: Traps): Express {
  const api = make();
  api.use(session({ secret: "secret", resave: false, saveUninitialized: false }));
  api.use(make.json(), make.urlencoded({ extended: true }));
  const idempotent = idempotency({ database, scope: "shared" });

  api.post(
    "/sends-file",
    idempotent({ operation: "sends-file" }, async (_req, res, once) => {
      await pay(once, "sends-file");
      res.sendFile(join(folder, "receipt.txt"));
    }),
  );
  api.post(
    "/returns-res",
    idempotent({ operation: "returns-res" }, async (_req, res, once) => {
      await pay(once, "returns-res");
      return res.status(201).json({ sent: true });
    }),
  );
  api.post(
    "/callback",
    idempotent({ operation: "callback" }, (_req, res, once) => {
      void pay(once, "callback").then(() => res.status(201).json({ sent: true }));
    }),
  );
  api.post(
    "/pipes",
    idempotent({ operation: "pipes" }, async (_req, res, once) => {
      await pay(once, "pipes");
      Readable.from(["one ", "two"]).pipe(res.type("text/plain"));
    }),
  );
  api.post(
    "/flat-headers",
    idempotent({ operation: "flat-headers" }, async (_req, res, once) => {
      await pay(once, "flat-headers");
      res.writeHead(201, "Made", ["Content-Type", "text/plain", "Link", "</a>", "Link", "</b>"]);
      res.write("one ");
      res.write(Buffer.from("two "));
      await new Promise<void>((resolve) => res.write("dGhyZWU=", "base64", () => resolve()));
      await new Promise<void>((resolve) => res.end(resolve));
    }),
  );
  api.post(
    "/finish",
    idempotent({ operation: "finish" }, async (_req, res, once) => {
      const done = new Promise((resolve) => res.once("finish", resolve));
      res.on("finish", () => finished.push("handler"));
      await pay(once, "finish");
      res.json({});
      await done;
    }),
  );
  api.post(
    "/hints",
    idempotent({ operation: "hints" }, async (_req, res, once) => {
      await new Promise<void>((resolve) =>
        res.writeEarlyHints({ link: "</style.css>; rel=preload" }, resolve),
      );
      res.writeContinue();
      res.writeProcessing();
      res.flushHeaders();
      await pay(once, "hints");
      res.end("after hints");
    }),
  );
  api.post(
    "/trailers",
    idempotent({ operation: "trailers" }, async (_req, res, once) => {
      await pay(once, "trailers");
      res.addTrailers({ "x-sum": "1" });
      res.end("with trailers");
    }),
  );
  api.post(
    "/throws-after-sending",
    idempotent({ operation: "throws-after-sending" }, async (_req, res, once) => {
      await pay(once, "throws-after-sending");
      res.status(201).set("x-sent", "1").json({ sent: true });
      throw new HttpError(422, "after sending");
    }),
  );
  api.post(
    "/begins-and-throws",
    idempotent({ operation: "begins-and-throws" }, async (_req, res, once) => {
      await pay(once, "begins-and-throws");
      res.write("the first half");
      throw new Error("halfway");
    }),
  );
  api.post(
    "/destroys",
    idempotent({ operation: "destroys" }, async (_req, res, once) => {
      await pay(once, "destroys");
      res.write("the first half");
      res.destroy(new HttpError(422, "destroyed"));
    }),
  );
  api.post(
    "/session",
    idempotent({ operation: "session" }, async (req, res, once) => {
      await pay(once, "session");
      Object.assign(req.session, { paid: true });
      res.json({ paid: true });
    }),
  );
  api.get("/session", (req, res) => void res.json(req.session));
  api.post(
    "/never",
    idempotent({ operation: "never", handlerTimeoutMs: 100 }, (_req, res, once) => {
      void pay(once, "never").then(async () => {
        await late().open;
        res.status(201).json({ late: true });
        res.write("more");
        res.end();
        late().arrive();
      });
    }),
  );
  api.post(
    "/unread",
    idempotent({ operation: "unread" }, async (_req, res) => void res.json({})),
  );
  api.post(
    "/form",
    idempotent({ operation: "form" }, async (req, res, once) => {
      await pay(once, "form");
      res.json(req.body);
    }),
  );
  const router = make.Router({ mergeParams: true });
  router.post(
    "/confirm",
    idempotent({ operation: "confirm" }, async (req, res, once) => {
      await pay(once, "confirm");
      res.json({ order: (req.params as { id?: string }).id });
    }),
  );
  api.use("/orders/:id", router);
  api.post(
    "/keyed",
    requireIdempotencyKey(async (_req, res, { key }) => res.json({ key })),
  );
  api.post(
    "/error-handler-hangs",
    idempotent({ operation: "error-handler-hangs", handlerTimeoutMs: 100 }, async (_req, _res, once) => {
      await pay(once, "error-handler-hangs");
      throw new HttpError(422, "never rendered");
    }),
  );
  const hangs: ErrorRequestHandler = (_error, _req, _res, _next) => {};
  api.use("/error-handler-hangs", hangs);
  return api;
}
