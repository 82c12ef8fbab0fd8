// A real PostgreSQL without an installation: for `npm start`, the tests and the benchmarks. Linux and macOS.
import { rmSync } from "node:fs";

import { freePort } from "./process/free-port.mjs";
import { guardFolder } from "./process/guard.mjs";
import { tryLock } from "./process/owner-lock.mjs";
import { postgresBinDir } from "./postgres/binaries.mjs";
import { initialise, locateDataFolder, passwordOf } from "./postgres/data-folder.mjs";
import { killEverything, runPostmaster, stopLeftOver } from "./postgres/postmaster.mjs";

/** @typedef {import("./embedded-postgres.d.mts").StartPostgresOptions} StartPostgresOptions */
/** @typedef {import("./embedded-postgres.d.mts").EmbeddedPostgres} EmbeddedPostgres */
/** @typedef {import("./postgres/data-folder.mjs").DataFolder} DataFolder */
/** @typedef {import("./postgres/postmaster.mjs").Postmaster} Postmaster */
/** @typedef {import("./process/owner-lock.mjs").OwnerLock} OwnerLock */

const signals = /** @type {const} */ ({ smart: "SIGTERM", fast: "SIGINT", immediate: "SIGQUIT" });

/** A killed server may need a moment to be gone. */
const retryMs = 10_000;

const notDurable = { fsync: "off", full_page_writes: "off" };

/**
 * @param {DataFolder} folder
 * @returns {OwnerLock}
 */
function own(folder) {
  const result = tryLock(`${folder.path}.owner`);
  if ("release" in result) return result;
  throw new Error(
    `process ${result.pid} already runs PostgreSQL on ${folder.path}: stop it, or choose another PORT or data folder`,
  );
}

/**
 * A free port can be taken by another before the server has it: then the next one.
 * @param {(port: number) => Promise<Postmaster>} run
 * @param {number | undefined} fixed
 */
async function runOnPort(run, fixed) {
  if (fixed) return { port: fixed, postmaster: await run(fixed) };
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort();
    try {
      return { port, postmaster: await run(port) };
    } catch (error) {
      if (attempt === 5 || !String(error).includes("is taken")) throw error;
    }
  }
}

/**
 * @typedef {object} Server what changes over the server's life, and what it is started with
 * @property {DataFolder} folder
 * @property {(port: number, retryMs: number) => Promise<Postmaster>} run
 * @property {OwnerLock | undefined} lock
 * @property {Postmaster} postmaster
 */

/** @param {Server} server */
function release(server) {
  server.lock?.release();
  server.lock = undefined;
}

/**
 * @param {Server} server
 * @param {() => void} end
 */
async function finish(server, end) {
  if (!server.postmaster.hasExited()) end();
  await server.postmaster.exited;
  release(server);
}

/**
 * @param {Server} server
 * @param {number} port
 */
async function startAgain(server, port) {
  if (!server.postmaster.hasExited()) return;
  try {
    if (!server.lock) {
      server.lock = own(server.folder);
      await stopLeftOver(server.folder);
    }
    server.postmaster = await server.run(port, retryMs);
  } catch (error) {
    release(server);
    throw error;
  }
}

/**
 * @param {Server} server
 * @param {number} port
 * @param {() => void} removed
 * @returns {EmbeddedPostgres}
 */
function controlsOf(server, port, removed) {
  const { path } = server.folder;
  const signal = (/** @type {NodeJS.Signals} */ name) => () => void process.kill(server.postmaster.pid, name);
  return {
    port,
    dataDir: path,
    connectionString: `postgres://postgres:${passwordOf(server.folder)}@127.0.0.1:${port}/postgres`,
    get pid() {
      return server.postmaster.pid;
    },
    start: () => startAgain(server, port),
    stop: (mode = "fast") => finish(server, signal(signals[mode])),
    kill: () => finish(server, () => killEverything(server.postmaster)),
    remove: async () => {
      await finish(server, signal(signals.immediate));
      for (const name of [path, `${path}.log`]) rmSync(name, { recursive: true, force: true });
      removed();
    },
  };
}

/** @param {DataFolder} folder */
function guardTemporary({ path }) {
  return guardFolder([path], { lockFile: `${path}/postmaster.pid` });
}

/**
 * @param {StartPostgresOptions} options
 * @returns {Promise<EmbeddedPostgres>}
 */
export async function startPostgres(options) {
  const { dataDir, port: fixed, binDir, settings = {}, durable = true, temporary = false } = options;
  const folder = locateDataFolder(dataDir);
  const prepared = { binDir: postgresBinDir({ binDir, user: folder.user }), durable };
  const all = { ...(durable ? {} : notDurable), ...settings };
  /** @type {Server["run"]} */
  const run = (port, patienceMs) =>
    runPostmaster(folder, { binDir: prepared.binDir, port, settings: all }, { retryMs: patienceMs });
  const lock = own(folder);
  // Only now, since until then the folder may be another's.
  const callOff = temporary ? guardTemporary(folder) : () => {};
  try {
    await stopLeftOver(folder);
    initialise(folder, prepared);
    const { port, postmaster } = await runOnPort((given) => run(given, fixed ? 0 : retryMs), fixed);
    return controlsOf({ folder, run, lock, postmaster }, port, callOff);
  } catch (error) {
    lock.release();
    throw error;
  }
}
