import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { guardProcess } from "../../../scripts/process/guard.mjs";

/**
 * @typedef {object} Worker
 * @property {string} name the same for the one that takes its place
 * @property {(signal: NodeJS.Signals) => Promise<void>} end sends the signal and waits for the end
 * @property {(signal: NodeJS.Signals) => void} send the signal alone
 */

/**
 * Starts processes of the torture and listens to what they say.
 * @param {{ env: Record<string, string>, onLine: (name: string, line: string) => void }} options
 */
export function processes({ env, onLine }) {
  /** @type {Set<Worker>} */
  const running = new Set();

  /**
   * @param {string} script
   * @param {string} name
   * @returns {Worker}
   */
  function start(script, name) {
    const path = fileURLToPath(new URL(script, import.meta.url));
    const child = spawn(process.execPath, [path], {
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const callOff = guardProcess(child.pid ?? 0, { signal: "KILL" });
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on("line", (line) => onLine(name, line));
    }
    let ended = false;
    /** @type {Promise<void>} */
    const exited = new Promise((resolve) => {
      child.once("close", (code, signal) => {
        ended = true;
        callOff();
        running.delete(worker);
        if (signal === null && code !== 0) onLine(name, `ended with ${code}`);
        resolve();
      });
    });
    /** @type {Worker} */
    const worker = {
      name,
      send: (signal) => void child.kill(signal),
      end: async (signal) => {
        if (!ended) child.kill(signal);
        await exited;
      },
    };
    running.add(worker);
    return worker;
  }

  /** Has the consumers tell what they are at: where events are missing, one of them may be stuck. */
  function askConsumers() {
    for (const worker of running) if (!worker.name.startsWith("relay")) worker.send("SIGUSR2");
  }

  return {
    start,
    askConsumers,
    endAll: () => Promise.all([...running].map((worker) => worker.end("SIGKILL"))),
  };
}
