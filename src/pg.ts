export { fromPg } from "./postgres/from-pg.ts";
export type { ClientOf, FromPgOptions, PgClient, PgPool } from "./postgres/from-pg.ts";
