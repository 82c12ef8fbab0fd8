// A process id alone is no identity, since the system reuses them: the start time goes with it.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** @typedef {{ pid: number, startedAt: string }} ProcessIdentity */

/**
 * @param {number} pid
 * @returns {string | undefined} when the process started, in a form that only compares; nothing when it is gone
 */
function startOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The command's name is in parentheses and may hold anything; the fields are counted after it.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    // A zombie has ended, whoever has yet to collect it.
    if (fields[0] === "Z" || fields[0] === "X") return undefined;
    return `${fields[19]}@${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()}`;
  } catch {
    return process.platform === "linux" ? undefined : startByPs(pid);
  }
}

/** @param {number} pid */
function startByPs(pid) {
  const { stdout } = spawnSync("ps", ["-o", "state=,lstart=", "-p", String(pid)], { encoding: "utf8" });
  const line = (stdout ?? "").trim();
  return line === "" || line.startsWith("Z") ? undefined : line.replace(/^\S+\s+/, "");
}

/**
 * @param {number} pid
 * @returns {ProcessIdentity | undefined}
 */
export function identityOf(pid) {
  const startedAt = startOf(pid);
  return startedAt === undefined ? undefined : { pid, startedAt };
}

/**
 * @param {ProcessIdentity} identity
 * @returns {boolean} whether that very process still runs
 */
export function isAlive({ pid, startedAt }) {
  return startOf(pid) === startedAt;
}

/**
 * @param {number} pid
 * @returns {string} the command line with spaces between the arguments; empty when the process is gone
 */
export function commandLineOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
  } catch {
    if (process.platform === "linux") return "";
    return spawnSync("ps", ["-o", "command=", "-p", String(pid)], { encoding: "utf8" }).stdout?.trim() ?? "";
  }
}

/**
 * @param {number} parent
 * @returns {number[]} the process ids of its children
 */
export function childrenOf(parent) {
  const { stdout } = spawnSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" });
  return (stdout ?? "")
    .split("\n")
    .map((line) => line.trim().split(/\s+/).map(Number))
    .filter(([, ppid]) => ppid === parent)
    .flatMap(([pid]) => (pid === undefined ? [] : [pid]));
}
