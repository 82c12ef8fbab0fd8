import type { QueryResultRow } from "pg";

/** The one member of a `pg` pool, client or transaction that the statements here need. */
export interface Queryable {
  query<R extends QueryResultRow>(config: {
    readonly text: string;
    readonly values: unknown[];
  }): Promise<{ readonly rows: R[] }>;
}
