// Tidies up when this process dies, however it dies: also by SIGKILL.
import { spawn } from "node:child_process";

/**
 * A shell that waits for its standard input to close, which the death of this process does, and then runs the script.
 * @param {string} script
 * @param {string[]} args
 * @returns {() => void} calls the guard off
 */
function guard(script, args) {
  const child = spawn("/bin/sh", ["-c", `read -r line; ${script}`, "sh", ...args], {
    cwd: "/",
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  child.unref();
  /** @type {import("node:net").Socket} */ (child.stdin).unref();
  return () => void child.kill("SIGKILL");
}

/**
 * @param {number} pid
 * @param {{ signal: "INT" | "KILL" }} options
 * @returns {() => void} calls the guard off; to be done as soon as the process has ended, since its id may be reused
 */
export function guardProcess(pid, { signal }) {
  return guard('kill "-$2" "$1"', [String(pid), signal]);
}

/**
 * Removes the paths, and what lies beside them under their name and a dot more; waits, ten seconds at most, for `lockFile` to go first.
 * @param {string[]} paths
 * @param {{ lockFile?: string }} [options]
 * @returns {() => void} calls the guard off
 */
export function guardFolder(paths, { lockFile = "" } = {}) {
  const wait = 'i=0; while [ -n "$1" ] && [ -e "$1" ] && [ $i -lt 100 ]; do sleep 0.1; i=$((i + 1)); done';
  return guard(`${wait}; shift; for path; do rm -rf "$path" "$path".*; done`, [lockFile, ...paths]);
}

/** Ends this process when its parent is gone, also while it is too busy to notice. */
export function endWithParent() {
  const script = 'while kill -0 "$1" && kill -0 "$2"; do sleep 1; done; kill -0 "$1" || kill -KILL "$2"';
  const child = spawn("/bin/sh", ["-c", script, "sh", String(process.ppid), String(process.pid)], {
    cwd: "/",
    detached: true,
    stdio: "ignore",
  });
  child.unref();
}
