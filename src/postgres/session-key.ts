import type { Session } from "./connections.ts";

/**
 * The member of a guarded client that leads functions that take a `tx` to its session. Not a WeakMap: one entry for
 * every command made the garbage collector's work a third of idemkit's CPU time.
 */
export const sessionKey: unique symbol = Symbol("idemkit.session");

/** The session behind the `tx` of a handler, or `undefined` for a client that idemkit did not hand out. */
export function sessionOf(tx: object | undefined): Session<unknown> | undefined {
  if (typeof tx !== "object" || tx === null) return undefined;
  return Reflect.get(tx, sessionKey) as Session<unknown> | undefined;
}
