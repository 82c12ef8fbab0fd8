import { IdemkitError } from "../errors.ts";
import type { Session } from "./connections.ts";

/**
 * The member of a guarded client that leads functions that take a `tx` to its session. Not a WeakMap: one entry for
 * every command made the garbage collector's work a third of idemkit's CPU time.
 */
export const sessionKey: unique symbol = Symbol("idemkit.session");

let savepoints = 0;

/** The session behind the `tx` of a handler, or `undefined` for a client that idemkit did not hand out. */
function sessionOf(tx: object): Session<unknown> | undefined {
  return Reflect.get(tx, sessionKey) as Session<unknown> | undefined;
}

/**
 * A part of a handler that may fail: its writes are rolled back to a savepoint when it throws, and the error goes on to
 * the caller, who may catch it and continue in the same transaction. More than 64 open at once slow PostgreSQL down.
 * @throws IdemkitError `transaction_closed` for a client that is not the `tx` of a running handler.
 */
export async function savepoint<T>(tx: object, work: () => Promise<T>): Promise<T> {
  const session = sessionOf(tx);
  if (session === undefined) {
    throw new IdemkitError("transaction_closed", { detail: "savepoint needs a handler's tx" });
  }
  savepoints += 1;
  const name = `idemkit_${savepoints}`;
  await session.run({ text: `savepoint ${name}` });
  try {
    const value = await work();
    await session.run({ text: `release savepoint ${name}` });
    return value;
  } catch (error) {
    await session.run({ text: `rollback to savepoint ${name}; release savepoint ${name}` });
    throw error;
  }
}
