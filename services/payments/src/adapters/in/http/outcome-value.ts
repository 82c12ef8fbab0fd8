import type { FastifyReply } from "fastify";
import { valueOf } from "idemkit";
import type { Outcome } from "idemkit";
import { errorOfRefusal } from "../../../core/refusal.ts";

/**
 * The value of an operation below the route, with the header that says whether it is a stored one.
 * @throws ServiceError that was stored as the answer; IdemkitError where there is none yet, or none can be known
 */
export const outcomeValue = <T>(reply: FastifyReply, outcome: Outcome<T>): T => {
  if (outcome.outcome === "replayed") {
    void reply.headers({ "idempotent-replayed": "true", "cache-control": "no-store" });
  }
  if ("disposition" in outcome && outcome.disposition === "refuse") {
    throw errorOfRefusal(outcome.refusal);
  }
  return valueOf(outcome);
};
