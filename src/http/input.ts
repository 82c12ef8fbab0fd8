/** Deeper commands are refused; where a `command` option gives the command itself, deeper input is shared. */
const maxDepth = 100;

/**
 * A copy of a parsed body, so that a handler that changes its input changes nothing for the next run. Plain values are
 * copied, dates and bytes too; instances of classes are shared, since only their makers can copy them.
 */
export function copyOfInput(value: unknown, depth = 0): unknown {
  if (typeof value !== "object" || value === null || depth > maxDepth) return value;
  if (Array.isArray(value)) return value.map((each) => copyOfInput(each, depth + 1));
  if (value instanceof Date) return new Date(value);
  if (Buffer.isBuffer(value)) return Buffer.from(value);
  if (value instanceof Uint8Array) return Uint8Array.from(value);
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  return copyOfObject(value, prototype, depth + 1);
}

function copyOfObject(value: object, prototype: object | null, depth: number): object {
  const copy: Record<string, unknown> =
    prototype === null ? (Object.create(null) as Record<string, unknown>) : {};
  for (const [name, member] of Object.entries(value)) {
    // An assignment to `__proto__` would set the prototype instead of a member.
    if (name === "__proto__") Object.defineProperty(copy, name, memberOf(copyOfInput(member, depth)));
    else copy[name] = copyOfInput(member, depth);
  }
  return copy;
}

function memberOf(value: unknown): PropertyDescriptor {
  return { value, writable: true, enumerable: true, configurable: true };
}
