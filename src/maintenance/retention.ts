import type { PostgresDatabase } from "../postgres/connections.ts";
import { statementOf } from "../postgres/statement.ts";

/**
 * Deletes expired records in bounded batches until none is left or the signal aborts; safe in any number of instances
 * at once, which skip each other's rows. One unbounded delete would stall the database.
 * @returns how many records were deleted
 */
export async function deleteExpiredRecords<Tx>(
  database: PostgresDatabase<Tx>,
  batchSize: number,
  signal?: AbortSignal,
): Promise<number> {
  const statement = statementOf("delete-expired", database.schema);
  let deleted = 0;
  for (let count = batchSize; count === batchSize && signal?.aborted !== true; deleted += count) {
    ({ count } = await database.connections.query({ ...statement, values: [batchSize] }));
  }
  return deleted;
}
