import { IdemkitError } from "../errors.ts";
import { sessionOf } from "./session-key.ts";
import { markHooks, transactionOf } from "./transaction.ts";

let savepoints = 0;

/**
 * A part of a handler that may fail: its writes and its events are rolled back to a savepoint when it throws, and the error
 * goes on to the caller, who may catch it and continue in the same transaction. More than 64 open at once slow PostgreSQL down.
 * @throws IdemkitError `transaction_closed` for a client that is not the `tx` of a running handler.
 */
export async function savepoint<T>(tx: object, work: () => Promise<T>): Promise<T> {
  const session = sessionOf(tx);
  if (session === undefined) {
    throw new IdemkitError("transaction_closed", { detail: "savepoint needs a handler's tx" });
  }
  savepoints += 1;
  const name = `idemkit_${savepoints}`;
  const transaction = transactionOf(tx);
  const undoHooks = transaction === undefined ? undefined : markHooks(transaction);
  await session.run({ text: `savepoint ${name}` });
  try {
    const value = await work();
    await session.run({ text: `release savepoint ${name}` });
    return value;
  } catch (error) {
    undoHooks?.();
    await session.run({ text: `rollback to savepoint ${name}; release savepoint ${name}` });
    throw error;
  }
}
