import type { FastifyInstance } from "fastify";
import { outboxStatus } from "idemkit";
import type { OutboxStatus, PostgresDatabase } from "idemkit";
import type { PoolClient } from "pg";
import { openApiDocument } from "./openapi.ts";
import type { Described } from "./openapi.ts";
import { problem } from "./problem.ts";
import { sendProblem } from "./send-problem.ts";

export interface ProbeOptions {
  readonly database: PostgresDatabase<PoolClient>;
  /** True from the moment the process has been told to stop. */
  readonly stopping: () => boolean;
  /** Not ready while an event has waited for a relay for longer; without one the age is only told. */
  readonly outboxAgeLimitMs: number | undefined;
  readonly described: Described;
}

/** A probe that waits longer than this has its answer. */
const READY_TIMEOUT_MS = 2000;

/** What anyone may ask without a token: liveness, readiness and the description of the API. */
export const probeRoutes = (app: FastifyInstance, options: ProbeOptions): void => {
  const { database, described } = options;
  // Alive means that the process answers; a database that is away is no reason to restart it.
  app.get("/health", async () => ({ status: "ok", service: "payments" }));

  app.get("/ready", async (_request, reply) => {
    const outbox = await withinTime(outboxStatus(database));
    const detail = notReady(outbox, options);
    if (detail === undefined) {
      return { status: "ready", outbox };
    }
    return sendProblem(
      reply,
      problem({ status: 503, code: "not_ready", detail, headers: { "retry-after": "1" } }),
    );
  });

  app.get("/openapi.json", async () => openApiDocument(described));
};

const notReady = (
  outbox: OutboxStatus | undefined,
  { stopping, outboxAgeLimitMs = Number.POSITIVE_INFINITY }: ProbeOptions,
): string | undefined => {
  if (stopping()) {
    return "the process is stopping";
  }
  if (outbox === undefined) {
    return "the database does not answer";
  }
  const { oldestUnpublishedMs: ageMs, unpublished } = outbox;
  return ageMs > outboxAgeLimitMs
    ? `an event has waited for ${Math.round(ageMs)} ms for a relay, ${unpublished} do: does one run, and does the broker take them?`
    : undefined;
};

/** What there is in time, if anything. */
const withinTime = async <T>(asked: Promise<T>): Promise<T | undefined> => {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, READY_TIMEOUT_MS, undefined);
  });
  try {
    return await Promise.race([asked.catch(() => undefined), tooLate]);
  } finally {
    clearTimeout(timer);
  }
};
