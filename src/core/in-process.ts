import type { Database, Unclaimed } from "./ports.ts";

/**
 * What this process itself knows of operations that run in it. It decides nothing (PROTOCOLS section 1: the asserting
 * insert does); it only spares the database the questions whose answers are known here, so that a storm of duplicates
 * of one key holds at most one connection beside the attempt's own (I6).
 */

/** An attempt of this process that holds its claim. */
export interface Running {
  readonly fingerprint: Uint8Array;
  readonly operationId: string;
  /** Resolves when the attempt has ended, however it ended. */
  readonly settled: Promise<void>;
}

/** A claim as duplicates see it: the attempt itself stays with the call that made the claim. */
export type SharedClaim = Unclaimed | { readonly claim: "claimed" };

/**
 * A claim on its way. Emptied when it is there: the tables that a map has grown out of keep their entries until the next
 * full collection, and a claim leads to all of its attempt.
 */
export interface Claiming {
  claim: Promise<SharedClaim> | undefined;
}

/** The registry of one database object. */
export interface InProcess {
  /** Attempts that hold their claim. */
  readonly running: Map<string, Running>;
  /** Claims on their way: duplicates that arrive meanwhile share the answer. */
  readonly claiming: Map<string, Claiming>;
  /** How many calls wait for an operation, by identity. */
  readonly waiting: Map<string, number>;
  /** Identities seen finished lately: their repeats are answered by one read instead of a transaction. */
  readonly finished: RecentSet;
}

/** A set that forgets its older members. */
export interface RecentSet {
  add(member: string): void;
  has(member: string): boolean;
}

/** How many finished identities are remembered at least; at some hundred bytes each this stays around a megabyte. */
const remembered = 4096;

const registries = new WeakMap<object, InProcess>();

/** The registry of a database object, made at its first use. */
export function inProcessOf<Tx>(database: Database<Tx>): InProcess {
  const found = registries.get(database);
  if (found !== undefined) return found;
  const made = {
    running: new Map(),
    claiming: new Map(),
    waiting: new Map(),
    finished: recentSet(remembered),
  };
  registries.set(database, made);
  return made;
}

/** Two generations: the older one goes as a whole, since removing members one by one costs more than keeping them. */
function recentSet(atLeast: number): RecentSet {
  let young = new Set<string>();
  let old = new Set<string>();
  return {
    has: (member) => young.has(member) || old.has(member),
    add: (member) => {
      young.add(member);
      if (young.size < atLeast) return;
      old = young;
      young = new Set();
    },
  };
}
