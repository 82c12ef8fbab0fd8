// What protection costs: the same handler without it, by hand, by idemkit, by the first seed's design and by peers.
import { cpus } from "node:os";

import { startBench } from "./bench.mjs";
import { afterCrash, deadTuples, raceCopies } from "./effects.mjs";
import { createMeasure, noSamples } from "./measure.mjs";
import { parseOptions } from "./options.mjs";
import { installPeers } from "./peers.mjs";
import { cellName, cellsOf, rotated, variantNames } from "./plan.mjs";
import { medianSample, printRatios, printTables, ratiosOf } from "./report.mjs";

/** @typedef {import("./measure.mjs").Sample} Sample */

/** Until the compiler of each process has seen its code often enough. */
const warmUp = { seconds: 6, limit: 3000 };

/**
 * @param {import("./measure.mjs").Measure} measure
 * @param {import("./options.mjs").Options} options
 * @param {readonly import("./plan.mjs").Cell[]} cells
 */
async function runRounds(measure, { rounds, seconds }, cells) {
  const samples = noSamples(cells);
  for (const cell of cells) await measure.sample(cell, warmUp);
  for (let round = 0; round < rounds; round += 1) {
    console.error(`round ${round + 1} of ${rounds}`);
    for (const cell of rotated(cells, round)) {
      samples.get(cellName(cell))?.push(await measure.sample(cell, { seconds }));
    }
  }
  return new Map([...samples].map(([name, own]) => [name, medianSample(own)]));
}

/**
 * The same number of requests a second for both: what a single request waits for, without the queue of a full machine.
 * @param {import("./measure.mjs").Measure} measure
 * @param {import("./options.mjs").Options} options
 * @param {ReadonlyMap<string, Sample>} medians
 */
async function runPaced(measure, { rounds, seconds }, medians) {
  const ratePerSecond = Math.floor((medians.get("idemkit one new")?.rate ?? 0) / 2);
  if (ratePerSecond === 0 || !medians.has("bare one new")) return undefined;
  const cells = cellsOf(["bare", "idemkit"]).filter((cell) => cell.handler === "one" && cell.kind === "new");
  const samples = noSamples(cells);
  for (let round = 0; round < rounds; round += 1) {
    for (const cell of rotated(cells, round)) {
      samples.get(cellName(cell))?.push(await measure.sample(cell, { seconds, ratePerSecond }));
    }
  }
  const [bare, idemkit] = [...samples.values()].map(medianSample);
  if (bare === undefined || idemkit === undefined) return undefined;
  const p99 = Number((idemkit.p99Ms / bare.p99Ms).toFixed(3));
  return { ratePerSecond, bareP99Ms: bare.p99Ms, idemkitP99Ms: idemkit.p99Ms, p99 };
}

/**
 * @param {import("./bench.mjs").Bench} bench
 * @param {import("./measure.mjs").Measure} measure
 */
async function countEffects(bench, measure) {
  /** @type {Map<string, import("./effects.mjs").Effects & { deadTuples: number }>} */
  const effects = new Map();
  for (const variant of bench.variants) {
    const commands = [...measure.counts].filter(([name]) => name.startsWith(`${variant}-`));
    const sent = commands.reduce((sum, [, count]) => sum + count.sent, 0);
    const dead = Number(((await deadTuples(bench, variant)) / sent).toFixed(3));
    const { lost, twice: raced, different } = await raceCopies(bench, variant);
    effects.set(variant, { lost, twice: raced, raced, different, afterCrash: 0, deadTuples: dead });
  }
  await bench.postgres.stop("immediate");
  await bench.postgres.start();
  await bench.reconnect();
  for (const [variant, own] of effects) {
    const seen = await afterCrash(bench, variant, measure);
    own.lost += seen.lost;
    own.twice += seen.twice + seen.afterCrash;
    own.afterCrash = seen.afterCrash;
  }
  return effects;
}

/** @param {import("./measure.mjs").Measure} measure */
function printFailures({ counts }) {
  for (const [name, { failed, failure }] of counts) {
    if (failed > 0) console.log(`${name}: ${failed} requests failed, the first with ${failure}`);
  }
}

async function main() {
  const options = parseOptions(process.argv.slice(2));
  const variants = options.only ?? variantNames;
  const cells = cellsOf(variants);
  installPeers();
  const bench = await startBench({ ...options, variants });
  try {
    const measure = createMeasure(bench);
    const medians = await runRounds(measure, options, cells);
    const paced = await runPaced(measure, options, medians);
    const effects = await countEffects(bench, measure);
    printTables(medians, effects);
    printFailures(measure);
    const ratios = ratiosOf(medians);
    printRatios(ratios);
    const machine = { cpu: cpus()[0]?.model, cores: cpus().length, node: process.version };
    const cellsOut = Object.fromEntries(medians);
    const out = { ratios, paced, options, machine, cells: cellsOut, effects: Object.fromEntries(effects) };
    console.log(JSON.stringify(out));
  } finally {
    await bench.stop();
  }
}

await main();
