import { readdirSync, readFileSync } from "node:fs";

/** Linux counts in hundredths of a second. */
const tickMs = 10;

/**
 * CPU time of a PostgreSQL server and its backends, in milliseconds; NaN where there is no /proc.
 * @param {number} postmasterPid
 */
export function serverCpuMs(postmasterPid) {
  let ticks = 0;
  for (const pid of processes()) {
    const fields = statOf(pid);
    if (fields === undefined) continue;
    const [, parent] = fields;
    // Of those that ended meanwhile the postmaster knows the sum.
    if (pid === String(postmasterPid)) ticks += sum(fields.slice(11, 15));
    else if (parent === String(postmasterPid)) ticks += sum(fields.slice(11, 13));
  }
  return ticks === 0 ? Number.NaN : ticks * tickMs;
}

function processes() {
  try {
    return readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  } catch {
    return [];
  }
}

/**
 * The fields of /proc/PID/stat behind the command's name, from the state on.
 * @param {string} pid
 */
function statOf(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    return text.slice(text.lastIndexOf(")") + 2).split(" ");
  } catch {
    return undefined; // it has ended
  }
}

/** @param {readonly string[]} fields */
function sum(fields) {
  return fields.reduce((total, field) => total + Number(field), 0);
}
