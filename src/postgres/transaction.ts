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
  readonly hooks: Map<symbol, CommitHook>;
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
  return {
    query: connections.query,
    reserve: connections.reserve,
    begin: async (first, isolation) => {
      const begun = await connections.begin(first, isolation);
      return { first: begun.first, session: hooked(begun.session, { ...home, connections }) };
    },
  };
}

function hooked<Tx>(session: Session<Tx>, home: TransactionHome): Session<Tx> {
  let hooks: Map<symbol, CommitHook> | undefined;
  let ended = false;
  const transaction: Transaction = {
    schema: home.schema,
    connections: home.connections,
    notify: home.notify,
    // Made for the first event of a transaction: most have none.
    get hooks() {
      hooks ??= new Map();
      return hooks;
    },
    get ended() {
      return ended;
    },
    run: session.run,
  };
  remember(session.tx, transaction);
  return {
    tx: session.tx,
    get broken() {
      return session.broken;
    },
    run: session.run,
    commit: async (...calls) => {
      ended = true;
      if (hooks === undefined) return session.commit(...calls);
      await session.commit(...callsOf(hooks), ...calls);
      for (const hook of hooks.values()) hook.committed();
    },
    rollback: async () => {
      ended = true;
      await session.rollback();
    },
  };
}

/** A database around another replaces what that one remembered. */
function remember(tx: unknown, transaction: Transaction): void {
  if (typeof tx !== "object" || tx === null) return;
  const session: (Session<unknown> & Remembering) | undefined = sessionOf(tx);
  if (session !== undefined) session.transaction = transaction;
}

function callsOf(hooks: Transaction["hooks"]): readonly Call[] {
  return [...hooks.values()].flatMap((hook) => hook.calls());
}

/** Remembers the state of every hook; the function returned goes back to it. */
export function markHooks({ hooks }: Transaction): () => void {
  const undo = new Map([...hooks].map(([name, hook]) => [name, hook.mark()]));
  return () => {
    for (const name of hooks.keys()) {
      const back = undo.get(name);
      if (back === undefined) hooks.delete(name);
      else back();
    }
  };
}
