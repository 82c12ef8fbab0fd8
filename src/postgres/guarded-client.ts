import { IdemkitError } from "../errors.ts";
import type { Session } from "./connections.ts";
import { sessionKey } from "./session-key.ts";
import { controlsTransaction } from "./transaction-control.ts";

/** Why a guarded client refuses, or nothing while its transaction is open. */
export interface Guard {
  closed: boolean;
  /** The session that the client is part of. */
  session?: Session<unknown>;
}

type Query = (...given: readonly unknown[]) => unknown;

/**
 * The `tx` that a handler gets: the live client behind a guard. It refuses transaction control, and everything after the
 * operation has ended, since the released client goes to the next request. Members other than these are the client's.
 */
export function guardedClient<C extends object>(client: C, guard: Guard): C {
  const query = guardedQuery(client, guard);
  return new Proxy(client, {
    get(target, member) {
      if (member === "query") return query;
      if (member === sessionKey) return guard.session;
      if (member === "release" || member === "end" || member === "connect") return refuseControl;
      const value: unknown = Reflect.get(target, member, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

function guardedQuery(target: { readonly query?: Query }, guard: Guard): Query {
  return (...given) => {
    const refusal = refusalOf(given[0], guard);
    if (refusal !== undefined) return refused(refusal, given);
    const { query } = target;
    if (typeof query !== "function") throw new TypeError("the client has no query function");
    return Reflect.apply(query, target, given);
  };
}

function refusalOf(statement: unknown, guard: Guard): IdemkitError | undefined {
  if (guard.closed) return new IdemkitError("transaction_closed");
  const text = textOf(statement);
  if (text !== undefined && controlsTransaction(text)) return new IdemkitError("transaction_control_refused");
  return undefined;
}

/** The text of a string, of `{ text }`, or of a cursor or stream that wraps a query. */
function textOf(statement: unknown): string | undefined {
  if (typeof statement === "string") return statement;
  if (typeof statement !== "object" || statement === null) return undefined;
  const { text, cursor } = statement as { readonly text?: unknown; readonly cursor?: unknown };
  if (typeof text === "string") return text;
  return cursor === undefined ? undefined : textOf(cursor);
}

/** Fails the way the caller listens: by callback, by throwing for a submittable, else by promise. */
function refused(error: IdemkitError, given: readonly unknown[]): unknown {
  const callback = given.at(-1);
  if (typeof callback === "function") {
    queueMicrotask(() => void Reflect.apply(callback, undefined, [error]));
    return undefined;
  }
  const [statement] = given;
  const submittable = typeof statement === "object" && statement !== null && "submit" in statement;
  if (submittable) throw error;
  return Promise.reject(error);
}

function refuseControl(): never {
  throw new IdemkitError("transaction_control_refused", { detail: "release, end and connect are idemkit's" });
}
