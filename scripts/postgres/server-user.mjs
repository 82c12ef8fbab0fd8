// PostgreSQL refuses to run as root: then it runs as another user, who must be able to reach its files.
import { chmodSync, lstatSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";

/** @typedef {{ uid: number, gid: number }} ServerUser nothing (undefined) stands for the current user */

/** @returns {boolean} */
export function isRoot() {
  return process.getuid?.() === 0;
}

/** initdb wants a user with a name, so the ids alone don't do. */
function unprivilegedUser() {
  for (const name of ["nobody", "postgres"]) {
    const line = readFileSync("/etc/passwd", "utf8")
      .split("\n")
      .find((entry) => entry.startsWith(`${name}:`));
    const [uid, gid] = line?.split(":").slice(2) ?? [];
    if (uid !== undefined && gid !== undefined) return { uid: Number(uid) >>> 0, gid: Number(gid) >>> 0 };
  }
  throw new Error("PostgreSQL can't run as root, and there is no user nobody: run this as another user");
}

/**
 * @param {string} [dataDir] an existing folder keeps the user that owns it
 * @returns {ServerUser | undefined}
 */
export function serverUser(dataDir) {
  if (!isRoot()) return undefined;
  const found = dataDir ? statSync(dataDir, { throwIfNoEntry: false }) : undefined;
  return found && found.uid !== 0 ? { uid: found.uid, gid: found.gid } : unprivilegedUser();
}

/**
 * @param {string} path
 * @param {ServerUser | undefined} user
 * @returns {boolean} whether the user may pass through every folder above the path
 */
export function isReachable(path, user) {
  if (user === undefined) return true;
  for (let folder = dirname(resolve(path)); ; folder = dirname(folder)) {
    const found = statSync(folder, { throwIfNoEntry: false });
    if (found && (found.mode & 0o001) === 0 && found.uid !== user.uid) return false;
    if (folder === dirname(folder)) return true;
  }
}

/**
 * A folder of our own in the system's temporary one; what another user put there under its name is refused.
 * @param {string} name
 * @param {ServerUser | undefined} user
 * @returns {string}
 */
export function temporaryFolder(name, user) {
  const base = [tmpdir(), "/tmp", "/var/tmp"].find((folder) => isReachable(join(folder, name), user));
  if (base === undefined)
    throw new Error("no temporary folder that PostgreSQL's user could enter: set TMPDIR");
  const owner = process.getuid?.() ?? 0;
  const folder = join(base, `${name}-${owner}`);
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  const found = lstatSync(folder);
  if (!found.isDirectory() || (process.getuid !== undefined && found.uid !== owner)) {
    throw new Error(`${folder} belongs to another user: remove it, or set TMPDIR`);
  }
  chmodSync(folder, 0o755); // whatever the umask was
  return folder;
}
