/** The one member of a `pg` pool, client or transaction that the statements here need. */
export interface Queryable {
  query(config: { readonly text: string; readonly values: unknown[] }): Promise<{ readonly rows: unknown[] }>;
}
