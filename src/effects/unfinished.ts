import { jsonCodec } from "../core/codec.ts";
import { checkObject, checkOneOf } from "../internal/options.ts";
import type { PostgresDatabase, Row } from "../postgres/connections.ts";
import { checkPostgresDatabase } from "../postgres/database.ts";
import { statementOf } from "../postgres/statement.ts";

/** An operation of the external mode that has no end yet. */
export interface Unfinished {
  readonly scope: string;
  readonly operation: string;
  readonly operationId: string;
  /** `uncertain`: nobody knows whether a call took effect, and somebody must say so with {@link resolveEffect}. */
  readonly state: "running" | "uncertain";
  /** How many attempts there were. */
  readonly attempt: number;
  readonly ageMs: number;
  /** Whether the lease has ended: the rescuer, or the next repeat, takes it up. */
  readonly abandoned: boolean;
  /** Calls with an intent and no result. */
  readonly openEffects: readonly string[];
}

/** The operations without an end, the oldest first; keys are not shown. */
export async function listUnfinished<Tx>(
  database: PostgresDatabase<Tx>,
  {
    states = ["running", "uncertain"],
    limit = 100,
  }: { states?: readonly Unfinished["state"][]; limit?: number } = {},
): Promise<readonly Unfinished[]> {
  const { connections, schema } = checkPostgresDatabase(database);
  const { rows } = await connections.query({ ...statementOf("lease-list", schema), values: [states, limit] });
  return rows.map(unfinishedOf);
}

function unfinishedOf(row: Row): Unfinished {
  return {
    scope: row["scope"] as string,
    operation: row["operation"] as string,
    operationId: row["operation_id"] as string,
    state: row["disposition"] as Unfinished["state"],
    attempt: Number(row["attempt"]),
    ageMs: Number(row["age_ms"]),
    abandoned: row["abandoned"] === true,
    openEffects: row["open_effects"] as readonly string[],
  };
}

/** What an operator found out about a call. */
export type Resolution =
  | { readonly effect: string; readonly as: "done"; readonly result: unknown }
  | { readonly effect: string; readonly as: "absent" };

const results = jsonCodec<unknown>();

/**
 * Settles by hand a call whose outcome nobody knew: `done` with the result it had, or `absent`. The operation then goes on
 * at its next repeat or by the rescuer.
 * @returns whether there was such a call in an uncertain operation
 * @throws IdemkitError `option_invalid`.
 */
export async function resolveEffect<Tx>(
  database: PostgresDatabase<Tx>,
  operationId: string,
  resolution: Resolution,
): Promise<boolean> {
  const { connections, schema } = checkPostgresDatabase(database);
  checkObject("resolution", resolution);
  checkOneOf("resolution.as", resolution.as, ["done", "absent"]);
  const result = resolution.as === "done" ? results.encode(resolution.result) : null;
  const values = [operationId, resolution.effect, resolution.as, result];
  const { rows } = await connections.query({ ...statementOf("effect-resolve", schema), values });
  return rows.length > 0;
}
