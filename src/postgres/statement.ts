import { createHash } from "node:crypto";

import { statements } from "./sql.generated.ts";

/** A statement of idemkit with its schema filled in, and the name it is prepared under. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

/** The name of a statement's file without its ending. */
export type StatementName = keyof typeof statements;

/** Fills in the schema. The prepared name holds a hash of the text, so that two schemas or versions never share one. */
export function statementOf(name: StatementName, schema: string): Statement {
  const text = withSchema(statements[name], schema);
  const digest = createHash("sha256").update(text).digest("hex").slice(0, 12);
  return { name: `idemkit-${name}-${digest}`, text };
}

/** Replaces psql's `:"schema"` by the quoted name. */
export function withSchema(sql: string, schema: string): string {
  const quoted = `"${schema.replaceAll('"', '""')}"`;
  return sql.replaceAll(':"schema"', () => quoted);
}
