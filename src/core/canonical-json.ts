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
  return write(value, []);
}

/** Where we are: the names and indexes on the way down, joined only for an error. Its length is the depth. */
type Path = (string | number)[];

function write(given: unknown, path: Path): string {
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
  if (path.length === maxDepth) throw new IdemkitError("command_too_deep", { details: { at: textOf(path) } });
  return Array.isArray(value) ? writeArray(value, path) : writeObject(value, path);
}

function plain(value: unknown, path: Path): unknown {
  if (typeof value !== "object" || value === null || !("toJSON" in value)) return value;
  const { toJSON } = value;
  return typeof toJSON === "function"
    ? (Reflect.apply(toJSON, value, [String(path.at(-1) ?? "")]) as unknown)
    : value;
}

function writeNumber(value: number, path: Path): string {
  const unsafe = Number.isInteger(value) && !Number.isSafeInteger(value);
  if (unsafe || !Number.isFinite(value)) {
    const at = textOf(path);
    throw new IdemkitError("command_number_unsafe", { detail: `at ${at}`, details: { at } });
  }
  // JSON.stringify writes −0 as 0, and numbers as ECMAScript does, which is what RFC 8785 asks for.
  return JSON.stringify(value);
}

function writeArray(value: readonly unknown[], path: Path): string {
  let text = "[";
  for (let i = 0; i < value.length; i += 1) {
    if (i > 0) text += ",";
    path.push(i);
    text += write(value[i], path);
    path.pop();
  }
  return `${text}]`;
}

function writeObject(value: object, path: Path): string {
  refuseContainers(value, path);
  let text = "{";
  // The default order of `sort` is that of UTF-16 units.
  for (const name of Object.keys(value).sort()) {
    const member: unknown = Reflect.get(value, name);
    if (member === undefined) continue;
    if (text.length > 1) text += ",";
    path.push(name);
    text += `${JSON.stringify(name)}:${write(member, path)}`;
    path.pop();
  }
  return `${text}}`;
}

/**
 * Objects whose content `Object.keys` does not show (Map, Set, RegExp, URLSearchParams, boxed numbers) would all look
 * like `{}`: two commands, one fingerprint. Their tag tells them apart in every realm, which `instanceof` does not.
 */
function refuseContainers(value: object, path: Path): void {
  const tag = Object.prototype.toString.call(value);
  if (tag !== "[object Object]") throw notJson(tag.slice("[object ".length, -1), path);
}

function notJson(what: string, path: Path): IdemkitError {
  const at = textOf(path);
  return new IdemkitError("command_not_json", { detail: `${what} at ${at}`, details: { at } });
}

function textOf(path: Path): string {
  return path.length === 0 ? "/" : path.map((step) => `/${step}`).join("");
}
