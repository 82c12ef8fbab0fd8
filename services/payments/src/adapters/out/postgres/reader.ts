import { DatabaseError } from "pg";
import type { Pool } from "pg";
import { ServiceError } from "../../../core/errors.ts";
import type { Queryable } from "./queryable.ts";

/**
 * The pool for reads outside a protected operation.
 * @throws ServiceError `service_unavailable` where no server answered: a full pool, a refused or a lost connection
 */
export const reader = (pool: Pool): Queryable => ({
  query: async (config) => {
    try {
      return await pool.query(config);
    } catch (error) {
      throw error instanceof DatabaseError ? error : unavailable(error);
    }
  },
});

const unavailable = (cause: unknown): ServiceError =>
  new ServiceError({
    kind: "unavailable",
    code: "service_unavailable",
    message: "the database does not answer: repeat the request",
    cause,
  });
