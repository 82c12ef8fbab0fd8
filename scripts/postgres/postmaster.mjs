// One run of the server: from its start to its end.
import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

import { guardProcess } from "../process/guard.mjs";
import { childrenOf, commandLineOf, identityOf, isAlive } from "../process/identity.mjs";
import { serverEnvironment } from "./data-folder.mjs";

/** @typedef {import("./data-folder.mjs").DataFolder} DataFolder */
/** @typedef {{ pid: number, exited: Promise<void>, hasExited: () => boolean }} Postmaster */
/** @typedef {{ binDir: string, port: number, settings: Record<string, string | number | boolean> }} StartOptions */

/** @param {string} path */
function readLines(path) {
  try {
    return readFileSync(path, "utf8").split("\n");
  } catch {
    return [];
  }
}

/**
 * Stops what a killed owner left running on this folder. The caller holds the folder's lock.
 * @param {DataFolder} folder
 */
export async function stopLeftOver({ path }) {
  const file = join(path, "postmaster.pid");
  const pid = Number(readLines(file)[0]);
  if (!pid) return;
  const identity = identityOf(pid);
  if (!identity || !commandLineOf(pid).includes(` -D ${path} -c `)) {
    // The id belongs to nobody or, reused, to a stranger: the server would refuse to start because of it.
    rmSync(file, { force: true });
    return;
  }
  for (const signal of /** @type {const} */ (["SIGINT", "SIGQUIT", "SIGKILL"])) {
    process.kill(pid, signal);
    if (await ended(identity, 10_000)) return;
  }
  throw new Error(`the PostgreSQL left over in ${path} (process ${pid}) can't be stopped`);
}

/**
 * @param {import("../process/identity.mjs").ProcessIdentity} identity
 * @param {number} timeoutMs
 */
async function ended(identity, timeoutMs) {
  const deadline = Date.now() + timeoutMs;
  while (isAlive(identity) && Date.now() < deadline) await delay(20);
  return !isAlive(identity);
}

/**
 * @param {DataFolder} folder
 * @param {StartOptions} options
 */
function argumentsOf({ path }, { port, settings }) {
  const fixed = {
    listen_addresses: "127.0.0.1",
    port,
    unix_socket_directories: "",
    timezone: "UTC",
    log_timezone: "UTC",
  };
  return [
    "-D",
    path,
    ...Object.entries({ ...fixed, ...settings }).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
  ];
}

/**
 * Detached, so that Ctrl-C in a terminal reaches us alone and we choose the order of stopping.
 * @param {DataFolder} folder
 * @param {StartOptions} options
 * @returns {Postmaster}
 */
function launch(folder, options) {
  const log = openSync(`${folder.path}.log`, "w", 0o600);
  const child = spawn(join(options.binDir, "postgres"), argumentsOf(folder, options), {
    cwd: "/",
    detached: true,
    env: serverEnvironment(),
    stdio: ["ignore", log, log],
    ...folder.user,
  });
  closeSync(log);
  if (child.pid === undefined) throw new Error(`PostgreSQL can't be run from ${options.binDir}`);
  const callOff = guardProcess(child.pid, { signal: "INT" });
  let over = false;
  /** @type {Promise<void>} */
  const exited = new Promise((resolve) => {
    child.once("exit", () => {
      over = true;
      callOff();
      resolve();
    });
  });
  return { pid: child.pid, exited, hasExited: () => over };
}

/**
 * The server writes its state into its pid file; no client is needed to read it.
 * @param {string} path
 * @param {number} pid
 */
function isReady(path, pid) {
  const lines = readLines(join(path, "postmaster.pid"));
  return Number(lines[0]) === pid && lines[7]?.trim() === "ready";
}

/** Faults that pass: the last server's processes are still ending, or its port is not free yet. */
const passing = /pre-existing shared memory block|lock file "postmaster.pid" already exists|could not bind/;

/**
 * @param {DataFolder} folder
 * @param {StartOptions} options
 * @returns {Promise<Postmaster | string>} the end of the server's log, where it ended before it was ready
 */
async function tryRun(folder, options) {
  const postmaster = launch(folder, options);
  while (!postmaster.hasExited()) {
    if (isReady(folder.path, postmaster.pid)) return postmaster;
    await delay(10);
  }
  return readLines(`${folder.path}.log`).slice(-12).join("\n").trim();
}

/**
 * @param {DataFolder} folder
 * @param {StartOptions} options
 * @param {{ retryMs: number }} patience
 * @returns {Promise<Postmaster>}
 * @throws an Error that names the port where it is taken, and else shows the end of the server's log
 */
export async function runPostmaster(folder, options, { retryMs }) {
  const deadline = Date.now() + retryMs;
  for (;;) {
    const result = await tryRun(folder, options);
    if (typeof result !== "string") return result;
    if (!passing.test(result) || Date.now() > deadline) throw startFailure(folder, options, result);
    await delay(200);
  }
}

/**
 * @param {DataFolder} folder
 * @param {StartOptions} options
 * @param {string} log
 */
function startFailure({ path }, { port }, log) {
  if (log.includes("could not bind")) {
    return new Error(`port ${port} is taken: PostgreSQL can't listen on it`);
  }
  return new Error(`PostgreSQL did not start in ${path}:\n${log}`);
}

/**
 * The machine's power cut, for these processes: nothing gets a chance to clean up.
 * @param {Postmaster} postmaster
 */
export function killEverything({ pid }) {
  const children = childrenOf(pid);
  for (const victim of [pid, ...children]) {
    try {
      process.kill(victim, "SIGKILL");
    } catch {
      // It ended by itself meanwhile.
    }
  }
}
