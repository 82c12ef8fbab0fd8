import { IdemkitError } from "../errors.ts";

/** Any value of JSON. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

/** Deeper commands are refused: no command of a business needs it, and recursion must stay bounded. */
const maxDepth = 100;

/**
 * RFC 8785 text of a value, as `JSON.stringify` would see it: members sorted by UTF-16 units, `undefined` members left
 * out, `toJSON` honoured, −0 written as 0, lone surrogates escaped.
 *
 * Recursion is safe because depth is checked on the way down, before the next frame is entered.
 * @throws IdemkitError `command_number_unsafe`, `command_too_deep` or `command_not_json`, with the path in `details.at`.
 */
export function canonicalJson(value: unknown): string {
  return write(value, "", 0);
}

function write(given: unknown, path: string, depth: number): string {
  const value = plain(given, path);
  switch (typeof value) {
    case "string":
      return JSON.stringify(value);
    case "number":
      return writeNumber(value, path);
    case "boolean":
      return value ? "true" : "false";
    case "object":
      break;
    default:
      throw notJson(typeof value, path);
  }
  if (value === null) return "null";
  if (depth === maxDepth) throw new IdemkitError("command_too_deep", { details: { at: path } });
  return Array.isArray(value) ? writeArray(value, path, depth + 1) : writeObject(value, path, depth + 1);
}

function plain(value: unknown, path: string): unknown {
  if (typeof value !== "object" || value === null || !("toJSON" in value)) return value;
  const { toJSON } = value;
  return typeof toJSON === "function" ? (Reflect.apply(toJSON, value, [path]) as unknown) : value;
}

function writeNumber(value: number, path: string): string {
  const unsafe = Number.isInteger(value) && !Number.isSafeInteger(value);
  if (unsafe || !Number.isFinite(value)) {
    throw new IdemkitError("command_number_unsafe", {
      detail: `at ${path || "/"}`,
      details: { at: path || "/" },
    });
  }
  // JSON.stringify writes −0 as 0, and numbers as ECMAScript does, which is what RFC 8785 asks for.
  return JSON.stringify(value);
}

function writeArray(value: readonly unknown[], path: string, depth: number): string {
  let text = "[";
  for (let i = 0; i < value.length; i += 1) {
    if (i > 0) text += ",";
    text += write(value[i], `${path}/${i}`, depth);
  }
  return `${text}]`;
}

function writeObject(value: object, path: string, depth: number): string {
  refuseContainers(value, path);
  let text = "{";
  for (const [name, member] of Object.entries(value).toSorted(byName)) {
    if (member === undefined) continue;
    if (text.length > 1) text += ",";
    text += `${JSON.stringify(name)}:${write(member, `${path}/${name}`, depth)}`;
  }
  return `${text}}`;
}

function byName([a]: [string, unknown], [b]: [string, unknown]): number {
  return a < b ? -1 : 1;
}

/**
 * Objects whose content `Object.entries` does not show (Map, Set, RegExp, URLSearchParams, boxed numbers) would all look
 * like `{}`: two commands, one fingerprint. Their tag tells them apart in every realm, which `instanceof` does not.
 */
function refuseContainers(value: object, path: string): void {
  const tag = Object.prototype.toString.call(value).slice("[object ".length, -1);
  if (tag !== "Object") throw notJson(tag, path);
}

function notJson(what: string, path: string): IdemkitError {
  return new IdemkitError("command_not_json", {
    detail: `${what} at ${path || "/"}`,
    details: { at: path || "/" },
  });
}
