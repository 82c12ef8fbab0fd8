export { fromPg } from "./postgres/from-pg.ts";
export type { ClientOf, FromPgOptions } from "./postgres/from-pg.ts";
export type { PgClient, PgPool } from "./postgres/pg-client.ts";
