import type { Call, Connections, Result, Session } from "./connections.ts";
import { sessionOf } from "./session-key.ts";

/** What a part of idemkit does with a transaction that a handler works in. */
export interface CommitHook {
  /** Calls that go ahead of those given to `commit`, in the same flight. Asked for once, at the commit; never throws. */
  calls(): readonly Call[];
  /** The transaction has committed. */
  committed(): void;
  /** Remembers the present state, and returns what goes back to it: for a savepoint that is rolled back. */
  mark(): () => void;
}

/** Where the transaction of a handler belongs, and what is to happen at its commit. */
export interface Transaction {
  readonly schema: string;
  readonly connections: Pick<Connections<unknown>, "query">;
  /** Whether relays are woken at the commit. */
  readonly notify: boolean;
  /** Whether it has been committed or rolled back. */
  readonly ended: boolean;
  run(call: Call): Promise<Result>;
  /** Made for the first hook of a transaction: most have none. */
  hooks: Map<symbol, CommitHook> | undefined;
}

/** Settings that every transaction of a database shares. */
export type TransactionHome = Pick<Transaction, "schema" | "connections" | "notify">;

/** A session that remembers its transaction; a WeakMap would cost the garbage collector an entry for every command. */
interface Remembering {
  transaction?: Transaction;
}

/** The transaction behind the `tx` of a handler, or `undefined` for a client that idemkit did not hand out. */
export function transactionOf(tx: object): Transaction | undefined {
  const session: (Session<unknown> & Remembering) | undefined = sessionOf(tx);
  return session?.transaction;
}

/** The same connections, whose sessions run the hooks of their transaction at the commit. */
export function withCommitHooks<Tx>(
  connections: Connections<Tx>,
  home: Pick<TransactionHome, "schema" | "notify">,
): Connections<Tx> {
  const inside = { schema: home.schema, notify: home.notify, connections };
  return {
    query: connections.query,
    reserve: connections.reserve,
    begin: async (first, isolation) => {
      const begun = await connections.begin(first, isolation);
      addHooks(begun.session, inside);
      return begun;
    },
  };
}

/** Changes the session in place: a copy would need an accessor of its own for `broken`, see `lazy-signal.ts`. */
function addHooks<Tx>(session: Session<Tx>, { schema, connections, notify }: TransactionHome): void {
  const { commit, rollback, run } = session;
  const transaction: Transaction & { ended: boolean } = {
    schema,
    connections,
    notify,
    ended: false,
    run,
    hooks: undefined,
  };
  remember(session.tx, transaction);
  Object.assign(session, {
    commit: (...calls: readonly Call[]) => {
      transaction.ended = true;
      const { hooks } = transaction;
      return hooks === undefined ? commit(...calls) : commitWith(hooks, commit, calls);
    },
    rollback: () => {
      transaction.ended = true;
      return rollback();
    },
  });
}

async function commitWith(
  hooks: ReadonlyMap<symbol, CommitHook>,
  commit: Session<unknown>["commit"],
  calls: readonly Call[],
): Promise<void> {
  await commit(...callsOf(hooks), ...calls);
  for (const each of hooks.values()) each.committed();
}

/** A database around another replaces what that one remembered. */
function remember(tx: unknown, transaction: Transaction): void {
  if (typeof tx !== "object" || tx === null) return;
  const session: (Session<unknown> & Remembering) | undefined = sessionOf(tx);
  if (session !== undefined) session.transaction = transaction;
}

function callsOf(hooks: ReadonlyMap<symbol, CommitHook>): readonly Call[] {
  return [...hooks.values()].flatMap((hook) => hook.calls());
}

/** Remembers the state of every hook; the function returned goes back to it. */
export function markHooks(transaction: Transaction): () => void {
  const undo = new Map([...(transaction.hooks ?? [])].map(([name, hook]) => [name, hook.mark()]));
  return () => {
    const { hooks } = transaction;
    for (const name of hooks?.keys() ?? []) {
      const back = undo.get(name);
      if (back === undefined) hooks?.delete(name);
      else back();
    }
  };
}
