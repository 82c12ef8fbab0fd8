// Where PgBouncer is, if it is.
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

/** Debian puts it where a user's PATH doesn't always look. */
const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin"];

/** @param {string} path */
function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** @returns {string | undefined} the program's path */
export function findPgBouncer() {
  return folders.map((folder) => join(folder, "pgbouncer")).find(isExecutable);
}
