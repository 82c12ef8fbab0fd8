/**
 * The same callback, but for what it throws: a failure of whoever is told must not stop the work that it is told of. It
 * becomes a warning of the process.
 */
export function harmless<A extends readonly unknown[]>(
  callback: (...args: A) => unknown,
): (...args: A) => void {
  return (...args) => {
    try {
      const given = callback(...args);
      if (given instanceof Promise) given.catch(warn);
    } catch (error) {
      warn(error);
    }
  };
}

/** A logger whose own failures are {@link harmless}. */
export function harmlessLogger<L extends { error(message: string): void }>(logger: L): L {
  const methods = ["info", "error"] as const;
  const members = methods.map((name) => {
    const told = (message: string): unknown =>
      (logger as L & Partial<Record<string, (text: string) => void>>)[name]?.(message);
    return [name, harmless(told)];
  });
  return Object.fromEntries(members) as L;
}

function warn(error: unknown): void {
  process.emitWarning(`idemkit: a callback threw: ${String(error)}`);
}
