/** @typedef {import("./measure.mjs").Sample} Sample */
/** @typedef {import("./effects.mjs").Effects} Effects */

/** @param {readonly number[]} values */
export function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** @param {number} value @param {number} digits */
function rounded(value, digits) {
  return Number(value.toFixed(digits));
}

/**
 * @param {readonly Sample[]} samples
 * @returns {Sample}
 */
export function medianSample(samples) {
  const of = (/** @type {keyof Sample} */ name) => median(samples.map((sample) => sample[name]));
  return {
    rate: rounded(of("rate"), 0),
    p50Ms: rounded(of("p50Ms"), 2),
    p99Ms: rounded(of("p99Ms"), 2),
    statements: rounded(of("statements"), 2),
    walBytes: rounded(of("walBytes"), 0),
    nodeCpuUs: rounded(of("nodeCpuUs"), 0),
    postgresCpuUs: rounded(of("postgresCpuUs"), 0),
    generatorCpu: rounded(of("generatorCpu"), 2),
  };
}

/**
 * idemkit relative to the others, from medians.
 * @param {ReadonlyMap<string, Sample>} cells
 */
export function ratiosOf(cells) {
  const ratio = (/** @type {"rate" | "p99Ms"} */ of, /** @type {string} */ a, /** @type {string} */ b) =>
    rounded((cells.get(a)?.[of] ?? Number.NaN) / (cells.get(b)?.[of] ?? Number.NaN), 3);
  return {
    handwritten: ratio("rate", "idemkit one new", "handwritten one new"),
    bareOne: ratio("rate", "idemkit one new", "bare one new"),
    bareFive: ratio("rate", "idemkit five new", "bare five new"),
    seedDesign: ratio("rate", "idemkit one new", "seed-design one new"),
    replay: ratio("rate", "idemkit one replay", "bare one new"),
    p99: ratio("p99Ms", "idemkit one new", "bare one new"),
  };
}

/** @type {Readonly<Record<keyof ReturnType<typeof ratiosOf>, string>>} */
const targets = {
  handwritten: "at least 0.97",
  bareOne: "at least 0.70",
  bareFive: "at least 0.85",
  seedDesign: "at least 1.4",
  replay: "at least 2",
  p99: "at most 1.3",
};

/** @param {readonly (readonly (string | number)[])[]} rows */
function table(rows) {
  const widths =
    rows[0]?.map((_, column) => Math.max(...rows.map((row) => String(row[column]).length))) ?? [];
  const line = (/** @type {readonly (string | number)[]} */ row) =>
    row
      .map((cell, i) =>
        i === 0 ? String(cell).padEnd(widths[i] ?? 0) : String(cell).padStart(widths[i] ?? 0),
      )
      .join("  ");
  return rows.map(line).join("\n");
}

/**
 * A rate of a variant that lost an effect says nothing.
 * @param {ReadonlyMap<string, Sample>} cells
 * @param {ReadonlyMap<string, Effects & { deadTuples: number }>} effects
 */
export function printTables(cells, effects) {
  const head = [
    "",
    "req/s",
    "p50 ms",
    "p99 ms",
    "statements",
    "WAL B",
    "Node us",
    "PostgreSQL us",
    "generator",
  ];
  const rows = [...cells].map(([name, sample]) => {
    const lost = effects.get(name.split(" ")[0] ?? "")?.lost ?? 0;
    const { rate, p50Ms, p99Ms, statements, walBytes, nodeCpuUs, postgresCpuUs, generatorCpu } = sample;
    const shown = lost > 0 ? `void (${lost} lost)` : rate;
    return [
      name,
      shown,
      p50Ms,
      p99Ms,
      statements,
      walBytes,
      nodeCpuUs,
      postgresCpuUs,
      `${Math.round(generatorCpu * 100)} %`,
    ];
  });
  console.log(`\nMedians; from "statements" on for one command.\n${table([head, ...rows])}`);
  const counted = [...effects].map(([name, { lost, twice, raced, different, afterCrash, deadTuples }]) => {
    return [name, lost, twice, raced, different, afterCrash, deadTuples];
  });
  const columns = [
    "effects",
    "lost",
    "twice",
    "of these raced",
    "different answers",
    "after a crash",
    "dead tuples/command",
  ];
  console.log(`\n${table([columns, ...counted])}`);
}

/** @param {ReturnType<typeof ratiosOf>} ratios */
export function printRatios(ratios) {
  const names = /** @type {(keyof typeof ratios)[]} */ (Object.keys(ratios));
  console.log(
    `\n${table([["ratio", "seen", "target"], ...names.map((name) => [name, ratios[name], targets[name]])])}\n`,
  );
}
