import { keyOf, requestOf } from "./commands.mjs";
import { openConnection } from "./connection.mjs";

/**
 * @typedef {object} Run
 * @property {number} port
 * @property {string} path
 * @property {string} prefix of the keys, the same for the first try and its replays
 * @property {number} connections
 * @property {number} seconds until no further request is sent; what is on its way is waited for
 * @property {number} first number of the first command
 * @property {number} [cycle] the run repeats this many commands over and over; else each is another one
 * @property {number} [limit] of commands; else only time ends the run
 * @property {number} [ratePerSecond] of all connections together; else each sends as soon as it has its answer
 */

/**
 * @typedef {object} RunResult
 * @property {number} commands answered as they should be
 * @property {number} sent
 * @property {number} failed answered otherwise
 * @property {string | undefined} failure the first of them
 * @property {number} seconds
 * @property {number} p50Ms
 * @property {number} p99Ms
 * @property {number} cpu share of one core that the generator used
 */

/** @typedef {{ next: number, sent: number, failed: number, failure: string | undefined, latencies: number[] }} Seen */

/**
 * @param {Float64Array} sorted
 * @param {number} share
 */
function quantile(sorted, share) {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/**
 * Waits for this connection's turn. At a fixed rate the time counts from the turn, also where the answer before came too
 * late for it: otherwise a slow server would be asked less and look better.
 * @param {Run} run
 * @param {{ index: number, turn: number, startMs: number }} place
 * @returns {Promise<number>} from when on the time of this request counts
 */
async function turnOf({ ratePerSecond, connections }, { index, turn, startMs }) {
  const now = performance.now();
  if (ratePerSecond === undefined) return now;
  const due = startMs + ((turn * connections + index) / ratePerSecond) * 1000;
  if (due <= now) return due;
  await new Promise((resolve) => {
    setTimeout(resolve, due - now);
  });
  return performance.now();
}

/**
 * One request after the other on one connection. An answer counts only if it is 201 and names its own key.
 * @param {Run} run
 * @param {Seen} seen
 * @param {{ connection: import("./connection.mjs").Connection, index: number, startMs: number }} place
 */
async function work(run, seen, { connection, index, startMs }) {
  const untilMs = startMs + run.seconds * 1000;
  for (let turn = 0; seen.next < (run.limit ?? Infinity); turn += 1) {
    const from = await turnOf(run, { index, turn, startMs });
    if (performance.now() >= untilMs) break;
    const n = run.first + (run.cycle === undefined ? seen.next : seen.next % run.cycle);
    seen.next += 1;
    const key = keyOf(run.prefix, n);
    const { status, body } = await connection.send(requestOf(run.path, key, n));
    seen.sent += 1;
    if (status === 201 && body.includes(key)) seen.latencies.push(performance.now() - from);
    else {
      seen.failed += 1;
      seen.failure ??= `${status} ${body.slice(0, 200)}`;
    }
  }
  connection.close();
}

/**
 * @param {Run} run
 * @returns {Promise<RunResult>}
 */
export async function runLoad(run) {
  /** @type {Seen} */
  const seen = { next: 0, sent: 0, failed: 0, failure: undefined, latencies: [] };
  const open = await Promise.all(Array.from({ length: run.connections }, () => openConnection(run.port)));
  const cpu = process.cpuUsage();
  const startMs = performance.now();
  await Promise.all(open.map((connection, index) => work(run, seen, { connection, index, startMs })));
  const elapsedMs = performance.now() - startMs;
  const used = process.cpuUsage(cpu);
  const sorted = Float64Array.from(seen.latencies).toSorted();
  return {
    commands: sorted.length,
    sent: seen.sent,
    failed: seen.failed,
    failure: seen.failure,
    seconds: elapsedMs / 1000,
    p50Ms: quantile(sorted, 0.5),
    p99Ms: quantile(sorted, 0.99),
    cpu: (used.user + used.system) / 1000 / elapsedMs,
  };
}
