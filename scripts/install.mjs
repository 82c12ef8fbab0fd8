// Installs the dependencies, where what is there is not what the lock file says.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { accessSync, constants, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const stampFile = join(root, "node_modules/.install-stamp");

/** @param {string} path */
function readIfAny(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

const machine = `${process.platform}-${process.arch}-${process.versions.modules}`;

function wantedStamp() {
  const lock = readFileSync(join(root, "package-lock.json"));
  return `${machine} ${createHash("sha256").update(lock).digest("hex")}`;
}

/** @typedef {{ version?: string, integrity?: string, optional?: boolean, link?: boolean }} LockedPackage */

/**
 * @param {string} lockFile
 * @returns {Record<string, LockedPackage>}
 */
function packagesOf(lockFile) {
  const { packages } = /** @type {{ packages: Record<string, LockedPackage> }} */ (JSON.parse(lockFile));
  return packages;
}

/**
 * npm notes what it has installed when all of it is in place: so an `npm install` by hand counts too.
 * Optional packages are for some platforms only and may be missing.
 */
function npmAgrees() {
  const installed = readIfAny(join(root, "node_modules/.package-lock.json"));
  if (installed === undefined) return false;
  const wanted = packagesOf(readFileSync(join(root, "package-lock.json"), "utf8"));
  const found = packagesOf(installed);
  return Object.entries(wanted).every(([path, { version, integrity, optional, link }]) => {
    if (!path.includes("node_modules/") || link === true || (optional === true && !found[path])) return true;
    return found[path]?.version === version && found[path]?.integrity === integrity;
  });
}

/** @returns {boolean} */
export function isInstalled() {
  const stamp = readIfAny(stampFile);
  if (stamp === wantedStamp()) return true;
  if (stamp !== undefined && !stamp.startsWith(`${machine} `)) return false;
  return npmAgrees();
}

/** Of the outer npm's settings only those that say where packages come from; not, say, `--prefix` or `--omit`. */
const kept =
  /^npm_config_(registry|userconfig|globalconfig|cache|proxy|https_proxy|noproxy|cafile|.*offline)$/i;

function cleanEnvironment() {
  const entries = Object.entries(process.env).filter(([name]) => {
    return kept.test(name) || !/^npm_(config|lifecycle|package|command)/i.test(name);
  });
  return { ...Object.fromEntries(entries), ...writableCache() };
}

/** A user without a home of their own gets a cache in the checkout. */
function writableCache() {
  const cache = process.env["npm_config_cache"] ?? join(homedir(), ".npm");
  try {
    mkdirSync(cache, { recursive: true });
    accessSync(cache, constants.W_OK);
    return {};
  } catch {
    return { npm_config_cache: join(root, ".cache/npm") };
  }
}

/** @param {string[]} args */
function npm(args) {
  const outer = process.env["npm_execpath"];
  const options = /** @type {const} */ ({ cwd: root, env: cleanEnvironment(), stdio: "inherit" });
  if (outer && basename(outer).startsWith("npm-cli"))
    return spawnSync(process.execPath, [outer, ...args], options);
  return spawnSync("npm", args, options);
}

/**
 * Nothing that we use needs its install script.
 * @returns {boolean} whether it worked
 */
export function install() {
  rmSync(stampFile, { force: true });
  const { status } = npm([
    "ci",
    "--include=dev",
    "--include=optional",
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
  ]);
  if (status === 0) noteInstalled();
  return status === 0;
}

/** Written after success only: a killed `npm ci` leaves half a tree, and no stamp. */
export function noteInstalled() {
  if (readIfAny(stampFile) !== wantedStamp()) writeFileSync(stampFile, wantedStamp());
}
