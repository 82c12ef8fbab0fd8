import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { freePort } from "../../../scripts/process/free-port.mjs";
import { guardProcess } from "../../../scripts/process/guard.mjs";

const root = fileURLToPath(new URL("../../..", import.meta.url));

/** How often in a row a process may end before it listens: a kill may find it there, a defect always does. */
const startsAtMost = 20;

/** @typedef {import("node:child_process").ChildProcess} ChildProcess */

/**
 * @typedef {object} Supervised a process that comes back at the same place, whoever ended it
 * @property {string} url
 * @property {() => Promise<void>} kill SIGKILL; resolves when its successor listens
 * @property {(ms: number) => Promise<void>} pause SIGSTOP for so long
 * @property {() => void} end
 */

/** @param {ChildProcess} child */
const isOver = (child) => child.exitCode !== null || child.signalCode !== null;

/**
 * @param {ChildProcess} child
 * @returns {Promise<void>}
 */
function listening({ stdout }) {
  return new Promise((resolve) => {
    if (!stdout) throw new Error("the process has no output to read");
    createInterface({ input: stdout }).on("line", (line) => {
      if (line.includes("listening at http://")) resolve();
    });
  });
}

/**
 * @param {string} script from the root
 * @param {(start: number) => Record<string, string>} envOf the environment of its first start, its second, and so on
 * @param {string} portName the variable that names its port
 * @returns {Promise<Supervised>} when it listens
 */
export async function supervise(script, envOf, portName) {
  const port = await freePort();
  let ended = false;
  let starts = 0;
  let startsInRow = 0;
  /** @type {Promise<ChildProcess>} the one that listens, or will */
  let running = start();

  /** @returns {Promise<ChildProcess>} */
  async function start() {
    starts += 1;
    startsInRow += 1;
    if (startsInRow > startsAtMost) throw new Error(`${script} ends before it listens`);
    const child = spawn(process.execPath, [join(root, script)], {
      cwd: root,
      env: { ...process.env, ...envOf(starts), [portName]: String(port) },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const callOff = guardProcess(child.pid ?? 0, { signal: "KILL" });
    /** @type {Promise<void>} */
    const exited = new Promise((resolve) => {
      child.once("exit", () => {
        callOff();
        if (!ended) running = start();
        resolve();
      });
    });
    await Promise.race([listening(child), exited]);
    if (isOver(child)) return ended ? child : running;
    startsInRow = 0;
    return child;
  }

  await running;
  return {
    url: `http://127.0.0.1:${port}`,
    kill: async () => {
      const child = await running;
      child.kill("SIGKILL");
      if (!isOver(child)) await once(child, "exit");
      await running;
    },
    pause: async (ms) => {
      const child = await running;
      child.kill("SIGSTOP");
      await delay(ms);
      child.kill("SIGCONT");
    },
    end: () => {
      ended = true;
      void running.then((child) => child.kill("SIGKILL"));
    },
  };
}
