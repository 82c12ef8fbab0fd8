import { findPgBouncer } from "./pgbouncer.mjs";

/** @returns {string[]} one line for each kind of test that this machine can't run */
export function leftOut() {
  return findPgBouncer()
    ? []
    : ["left out: the tests behind PgBouncer (no pgbouncer here; Debian has a package)"];
}
