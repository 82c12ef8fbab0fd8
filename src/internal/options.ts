import { IdemkitError } from "../errors.ts";

/**
 * Refuses what isn't an object of options, and an option that does not exist, with the nearest one named: neither may
 * pass for the defaults.
 * @throws IdemkitError `option_invalid`.
 */
export function checkNames(where: string, given: unknown, known: readonly string[]): void {
  checkObject(where, given);
  for (const name of Object.keys(given)) {
    if (known.includes(name)) continue;
    const near = nearest(name, known);
    const hint = near === undefined ? `known are ${known.join(", ")}` : `did you mean ${near}?`;
    throw invalid(`${where}.${name}`, `is not an option: ${hint}`);
  }
}

/** @throws IdemkitError `option_invalid` unless `value` is a whole number from `min` to `max`. */
export function checkInteger(at: string, value: number, min: number, max: number): number {
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw invalid(at, `must be a whole number from ${min} to ${max}, not ${String(value)}`);
}

/** @throws IdemkitError `option_invalid` unless `value` is an object, and no array. */
export function checkObject(at: string, value: unknown): asserts value is object {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return;
  throw invalid(at, "must be an object");
}

/** @throws IdemkitError `option_invalid` unless `value` is a function. */
export function checkFunction(at: string, value: unknown): void {
  if (typeof value !== "function") throw invalid(at, "must be a function");
}

/** @throws IdemkitError `option_invalid` unless `value` is one of those that are known. */
export function checkOneOf(at: string, value: unknown, known: readonly string[]): void {
  if (known.some((each) => each === value)) return;
  throw invalid(at, `must be ${known.map((each) => JSON.stringify(each)).join(" or ")}`);
}

/** An `option_invalid` that names the option. */
export function invalid(at: string, detail: string): IdemkitError {
  return new IdemkitError("option_invalid", { detail: `${at} ${detail}`, details: { at } });
}

function nearest(name: string, known: readonly string[]): string | undefined {
  const scored = known.map((candidate) => ({
    candidate,
    far: distance(name.toLowerCase(), candidate.toLowerCase()),
  }));
  const [best] = scored.toSorted((a, b) => a.far - b.far);
  return best !== undefined && best.far <= Math.max(2, name.length / 3) ? best.candidate : undefined;
}

/** Levenshtein's distance, one row at a time. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
