import pg from "pg";

/** Counts every statement that this process sends, whoever sends it: all of them pass here. */
export function countStatements() {
  const seen = { count: 0 };
  const { query: send } = pg.Client.prototype;
  pg.Client.prototype.query = function query(/** @type {unknown[]} */ ...given) {
    seen.count += 1;
    return Reflect.apply(send, this, given);
  };
  return seen;
}
