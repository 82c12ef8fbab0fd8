// Where a cluster's files lie, and how they come to be: whole, or not at all.
import { spawnSync } from "node:child_process";
import { createHash, randomBytes, randomUUID } from "node:crypto";
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

import { isReachable, serverUser, temporaryFolder } from "./server-user.mjs";

/** @typedef {import("./server-user.mjs").ServerUser} ServerUser */
/** @typedef {{ path: string, user: ServerUser | undefined }} DataFolder */

const passwordFile = "superuser-password";

/**
 * As root, below a folder that only root may enter, the files are kept in the temporary folder, under a
 * name made from the asked-for path; a note in the asked-for place says where.
 * @param {string} asked
 * @returns {DataFolder}
 */
export function locateDataFolder(asked) {
  const path = resolve(asked);
  const user = serverUser(path);
  mkdirSync(dirname(path), { recursive: true });
  if (isReachable(path, user)) return { path, user };
  const name = createHash("sha256").update(path).digest("hex").slice(0, 16);
  const elsewhere = join(temporaryFolder("idemkit-data", user), name);
  const why = "PostgreSQL doesn't run as root, and its user can't enter this folder";
  writeFileSync(`${path}.location.txt`, `The data is in ${elsewhere}\n(${why}).\n`);
  return { path: elsewhere, user: serverUser(elsewhere) };
}

/**
 * @param {DataFolder} folder
 * @param {{ binDir: string, durable: boolean }} options
 */
export function initialise({ path, user }, { binDir, durable }) {
  if (existsSync(join(path, "PG_VERSION"))) {
    checkVersion(path, binDir);
    return;
  }
  if (existsSync(path) && readdirSync(path).length > 0) {
    throw new Error(`${path} is not a PostgreSQL data folder, and not empty: remove it, or name another`);
  }
  removeUnfinished(path);
  const draft = `${path}.init-${randomUUID()}`;
  makeOwned(draft, user);
  const password = `${draft}.password`;
  writeFileSync(password, randomBytes(18).toString("base64url"), { mode: 0o600 });
  if (user) chownSync(password, user.uid, user.gid);
  runInitdb(binDir, [`--pgdata=${draft}`, `--pwfile=${password}`, ...(durable ? [] : ["--no-sync"])], user);
  renameSync(password, join(draft, passwordFile));
  renameSync(draft, path);
}

/**
 * @param {string} path
 * @param {ServerUser | undefined} user
 */
function makeOwned(path, user) {
  mkdirSync(path, { mode: 0o700 });
  if (user) chownSync(path, user.uid, user.gid);
}

/**
 * @param {string} path
 * @param {string} binDir
 */
function checkVersion(path, binDir) {
  const made = readFileSync(join(path, "PG_VERSION"), "utf8").trim();
  const { stdout } = spawnSync(join(binDir, "postgres"), ["--version"], { encoding: "utf8" });
  const ours = / (\d+)/.exec(stdout ?? "")?.[1];
  if (ours === made) return;
  throw new Error(`${path} was made by PostgreSQL ${made}, this is ${ours}: remove it, or set PG_BIN_DIR`);
}

/**
 * What a killed initdb left; the caller holds the folder's lock, so nobody is at work on it.
 * @param {string} path
 */
function removeUnfinished(path) {
  for (const name of readdirSync(dirname(path))) {
    const unfinished = name.startsWith(`${basename(path)}.init-`);
    if (unfinished) rmSync(join(dirname(path), name), { recursive: true, force: true });
  }
}

/**
 * @param {string} binDir
 * @param {string[]} options
 * @param {ServerUser | undefined} user
 */
function runInitdb(binDir, options, user) {
  const fixed = ["--username=postgres", "--encoding=UTF8", "--locale=C", "--auth=scram-sha-256"];
  const result = spawnSync(join(binDir, "initdb"), [...fixed, ...options], {
    cwd: "/",
    encoding: "utf8",
    env: serverEnvironment(),
    ...user,
  });
  if (result.status === 0) return;
  throw new Error(`initdb failed: ${result.error?.message ?? result.stderr.trim()}`, { cause: result.error });
}

/**
 * Nothing of the caller's PG* variables and language may reach the server.
 * @returns {NodeJS.ProcessEnv}
 */
export function serverEnvironment() {
  return { PATH: process.env["PATH"], LC_ALL: "C", TZ: "UTC" };
}

/**
 * @param {DataFolder} folder
 * @returns {string} the superuser's password, which only this user and the server's can read
 */
export function passwordOf({ path }) {
  return readFileSync(join(path, passwordFile), "utf8").trim();
}
