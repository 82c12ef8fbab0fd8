// A real PostgreSQL without an installation: for `npm start`, the tests and the benchmarks. Linux and macOS.
import { rmSync } from "node:fs";

import { tryLock } from "./process/owner-lock.mjs";
import { postgresBinDir } from "./postgres/binaries.mjs";
import { initialise, locateDataFolder, passwordOf } from "./postgres/data-folder.mjs";
import { freePort, killEverything, runPostmaster, stopLeftOver } from "./postgres/postmaster.mjs";

/** @typedef {import("./embedded-postgres.d.mts").StartPostgresOptions} StartPostgresOptions */
/** @typedef {import("./embedded-postgres.d.mts").EmbeddedPostgres} EmbeddedPostgres */
/** @typedef {import("./postgres/data-folder.mjs").DataFolder} DataFolder */
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
 * @param {DataFolder} folder
 * @param {{ binDir: string, durable: boolean }} options
 */
async function prepare(folder, options) {
  const lock = own(folder);
  try {
    await stopLeftOver(folder);
    initialise(folder, options);
    return lock;
  } catch (error) {
    lock.release();
    throw error;
  }
}

/**
 * A free port can be taken by another before the server has it: then the next one.
 * @param {(port: number) => Promise<import("./postgres/postmaster.mjs").Postmaster>} run
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
 * @param {StartPostgresOptions} options
 * @returns {Promise<EmbeddedPostgres>}
 */
export async function startPostgres({
  dataDir,
  port: fixed,
  binDir,
  settings = {},
  durable = true,
  temporary = false,
}) {
  const folder = locateDataFolder(dataDir);
  const prepared = { binDir: postgresBinDir({ binDir, user: folder.user }), durable };
  const all = { ...(durable ? {} : notDurable), ...settings };
  const patienceMs = fixed ? 0 : retryMs;

  /**
   * @param {number} port
   * @param {number} [patience]
   */
  const run = (port, patience = patienceMs) => {
    const options = { binDir: prepared.binDir, port, settings: all, removeOnDeath: temporary };
    return runPostmaster(folder, options, { retryMs: patience });
  };

  /** @type {OwnerLock | undefined} */
  let lock = await prepare(folder, prepared);
  const release = () => {
    lock?.release();
    lock = undefined;
  };
  const first = await runOnPort(run, fixed).catch((/** @type {unknown} */ error) => {
    release();
    throw error;
  });
  const { port } = first;
  let { postmaster } = first;

  /** @param {() => void} end */
  const finish = async (end) => {
    if (!postmaster.hasExited()) end();
    await postmaster.exited;
    release();
  };

  return {
    port,
    dataDir: folder.path,
    connectionString: `postgres://postgres:${passwordOf(folder)}@127.0.0.1:${port}/postgres`,
    get pid() {
      return postmaster.pid;
    },
    start: async () => {
      if (!postmaster.hasExited()) return;
      lock ??= await prepare(folder, prepared);
      postmaster = await run(port, retryMs);
    },
    stop: (mode = "fast") => finish(() => process.kill(postmaster.pid, signals[mode])),
    kill: () => finish(() => killEverything(postmaster)),
    remove: async () => {
      await finish(() => process.kill(postmaster.pid, signals.immediate));
      for (const path of [folder.path, `${folder.path}.log`]) rmSync(path, { recursive: true, force: true });
    },
  };
}
