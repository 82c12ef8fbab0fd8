// Ends another process when this one dies, however it dies: also by SIGKILL.
import { spawn } from "node:child_process";

/**
 * Reads until its standard input closes, which the death of this process does; then `$1` gets the signal
 * `$2`, and when it is gone, the paths after that are removed.
 */
const script = `read -r line; pid=$1 signal=$2; shift 2; kill "-$signal" "$pid" 2>/dev/null
if [ $# -gt 0 ]; then while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done; rm -rf "$@"; fi`;

/**
 * @param {number} pid
 * @param {{ signal: "INT" | "KILL", removePaths?: string[] }} options
 * @returns {() => void} calls the guard off; to be done as soon as the process has ended
 */
export function guardProcess(pid, { signal, removePaths = [] }) {
  const guard = spawn("/bin/sh", ["-c", script, "sh", String(pid), signal, ...removePaths], {
    cwd: "/",
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  guard.unref();
  /** @type {import("node:net").Socket} */ (guard.stdin).unref();
  return () => void guard.kill("SIGKILL");
}
