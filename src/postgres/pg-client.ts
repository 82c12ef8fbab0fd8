import type { Row } from "./connections.ts";

/** The part of a result of `pg` that is read. */
export interface PgResult {
  readonly command: string;
  readonly rowCount: number | null;
  readonly rows: readonly Row[];
}

/** A statement as `pg` takes it. Bare text where that is all: `pg` clones an object, descriptor by descriptor. */
export type PgStatement =
  | string
  | { readonly name?: string; readonly text: string; readonly values?: unknown[] };

/** The members of a `pg` client that are called, whichever version it is. */
export interface PgClient {
  query(statement: PgStatement): Promise<PgResult>;
  release(error?: Error | boolean): void;
  on(event: "error", listener: (error: Error) => void): unknown;
  removeListener(event: "error", listener: (error: Error) => void): unknown;
  /** Since pg 8.19: `I` idle, `T` in a transaction, `E` in a failed one. */
  getTransactionStatus?(): "I" | "T" | "E" | null;
  /** Since pg 8.22: whether statements are sent without waiting for the answers of earlier ones. */
  readonly pipeline?: boolean;
  /** Where there is one, the statements of a flight leave in one packet. */
  readonly connection?: { readonly stream?: { cork?(): void; uncork?(): void } };
}

/** The members of a `pg` pool that are called. */
export interface PgPool {
  connect(): Promise<PgClient>;
  readonly options?: { readonly connectionTimeoutMillis?: number | undefined };
}
