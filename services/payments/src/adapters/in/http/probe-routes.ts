import type { FastifyInstance } from "fastify";
import type { Pool } from "pg";
import { openApiDocument } from "./openapi.ts";
import type { Described } from "./openapi.ts";
import { problem } from "./problem.ts";
import { sendProblem } from "./send-problem.ts";

export interface ProbeOptions {
  readonly pool: Pool;
  /** True from the moment the process has been told to stop. */
  readonly stopping: () => boolean;
  readonly described: Described;
}

/** A probe that waits longer than this has its answer. */
const READY_TIMEOUT_MS = 2000;

/** What anyone may ask without a token: liveness, readiness and the description of the API. */
export const probeRoutes = (app: FastifyInstance, { pool, stopping, described }: ProbeOptions): void => {
  // Alive means that the process answers; a database that is away is no reason to restart it.
  app.get("/health", async () => ({ status: "ok", service: "payments" }));

  app.get("/ready", async (_request, reply) => {
    if (!stopping() && (await answers(pool))) {
      return { status: "ready" };
    }
    const detail = stopping() ? "the process is stopping" : "the database does not answer";
    return sendProblem(
      reply,
      problem({ status: 503, code: "not_ready", detail, headers: { "retry-after": "1" } }),
    );
  });

  app.get("/openapi.json", async () => openApiDocument(described));
};

const answers = async (pool: Pool): Promise<boolean> => {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, READY_TIMEOUT_MS, false);
  });
  const asked = pool.query("select 1").then(
    () => true,
    () => false,
  );
  try {
    return await Promise.race([asked, tooLate]);
  } finally {
    clearTimeout(timer);
  }
};
