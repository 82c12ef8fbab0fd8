import { serverCpuMs } from "./cpu.mjs";
import { cellName } from "./plan.mjs";

/** @typedef {import("./plan.mjs").Cell} Cell */
/** @typedef {import("./load/run.mjs").RunResult} RunResult */

/**
 * One round of one cell; what is counted or summed up is a command's share.
 * @typedef {object} Sample
 * @property {number} rate commands a second
 * @property {number} p50Ms
 * @property {number} p99Ms
 * @property {number} statements
 * @property {number} walBytes
 * @property {number} nodeCpuUs of the service's process
 * @property {number} postgresCpuUs of the database server and its backends
 * @property {number} generatorCpu share of one core
 */

/**
 * What was sent of one kind of command, and what became of it.
 * @typedef {object} Count
 * @property {number} sent
 * @property {number} acknowledged
 * @property {number} failed
 * @property {string | undefined} failure the first
 * @property {number} last how many the latest round sent
 */

/** Replays are made of this many finished commands: retries come soon after the first try. */
const replayed = 1000;

/** @param {string} variant @param {string} handler */
export function prefixOf(variant, handler) {
  return `${variant}-${handler}`;
}

/**
 * What a run sends: new commands go on from the last number, replays go back.
 * @param {Cell["kind"]} kind
 * @param {Count} count
 */
function span(kind, { sent, last }) {
  if (kind === "new") return { first: sent };
  if (kind === "replay") return { first: Math.max(0, sent - replayed), cycle: Math.min(replayed, sent) };
  return { first: sent - last, limit: last }; // each once: the other process knows none of them yet
}

/**
 * Measures cells and keeps count of what was sent, so that effects can be compared with acknowledgements afterwards.
 * @param {import("./bench.mjs").Bench} bench
 */
export function createMeasure({ admin, postgres, load, serverOf, connections }) {
  /** @type {Map<string, Count>} */
  const counts = new Map();

  /** @param {Pick<Cell, "variant" | "handler">} cell */
  function countOf({ variant, handler }) {
    const name = prefixOf(variant, handler);
    const count = counts.get(name) ?? { sent: 0, acknowledged: 0, failed: 0, failure: undefined, last: 0 };
    counts.set(name, count);
    return count;
  }

  async function walPosition() {
    const { rows } = await admin.query("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn as position");
    return Number(rows[0].position);
  }

  /** @param {Cell} cell */
  async function used(cell) {
    const { statements, cpuMs } = await serverOf(cell).call("usage");
    return { statements, cpuMs, wal: await walPosition(), postgresMs: serverCpuMs(postgres.pid) };
  }

  /**
   * @param {Cell} cell
   * @param {{ seconds: number, ratePerSecond?: number, limit?: number }} options
   * @returns {Promise<RunResult>}
   */
  async function run(cell, options) {
    const { variant, handler, kind } = cell;
    const count = countOf(cell);
    const port = await serverOf(cell).call("port");
    const where = { port, path: `/${handler}`, prefix: prefixOf(variant, handler), connections };
    /** @type {RunResult} */
    const result = await load.call("run", { ...where, ...options, ...span(kind, count) });
    count.failed += result.failed;
    count.failure ??= result.failure;
    if (kind !== "new") return result;
    count.sent += result.sent;
    count.acknowledged += result.commands;
    count.last = result.sent;
    return result;
  }

  /**
   * @param {Cell} cell
   * @param {{ seconds: number, ratePerSecond?: number, limit?: number }} options
   * @returns {Promise<Sample>}
   */
  async function sample(cell, options) {
    const before = await used(cell);
    const result = await run(cell, options);
    const after = await used(cell);
    return {
      rate: result.commands / result.seconds,
      p50Ms: result.p50Ms,
      p99Ms: result.p99Ms,
      statements: (after.statements - before.statements) / result.sent,
      walBytes: (after.wal - before.wal) / result.sent,
      nodeCpuUs: ((after.cpuMs - before.cpuMs) * 1000) / result.sent,
      postgresCpuUs: ((after.postgresMs - before.postgresMs) * 1000) / result.sent,
      generatorCpu: result.cpu,
    };
  }

  return { sample, counts };
}

/** @typedef {ReturnType<typeof createMeasure>} Measure */

/**
 * @param {readonly Cell[]} cells
 * @returns {Map<string, Sample[]>}
 */
export function noSamples(cells) {
  return new Map(cells.map((cell) => [cellName(cell), []]));
}
