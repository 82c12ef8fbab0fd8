import { IdemkitError } from "../errors.ts";
import { runClaimed, settle, unavailable } from "./attempt.ts";
import type { Executed, Execution } from "./execution.ts";
import { sameFingerprint } from "./fingerprint.ts";
import { checkIdentity, identityText } from "./identity.ts";
import { inProcess } from "./in-process.ts";
import type { InProcess } from "./in-process.ts";
import type { AttemptSettings, Claim } from "./ports.ts";
import { waiter } from "./waiter.ts";

const registries = new WeakMap<object, InProcess<unknown>>();

/**
 * Executes an operation once: claims it, runs the handler, finishes; or answers what is known of it already.
 *
 * The order of the questions follows from I6: what this process knows costs nothing, one read or claim at a time goes to
 * the database for an identity, and nobody holds a connection while waiting.
 * @throws IdemkitError `idempotency_unavailable`, the errors of {@link checkIdentity}, and what the handler threw where
 * nothing renders it.
 */
export async function execute<Tx>(execution: Execution<Tx>): Promise<Executed> {
  checkIdentity(execution.identity);
  const known = registryOf<Tx>(execution);
  const identity = identityText(execution.identity);
  const waits = waiter(execution, known, identity);
  for (;;) {
    const running = known.running.get(identity);
    if (running !== undefined) {
      if (!sameFingerprint(running.fingerprint, execution.fingerprint)) return { outcome: "mismatch" };
      if (!(await waits.until(running.settled))) return { outcome: "in-progress" };
      continue;
    }
    const shared = known.claiming.get(identity);
    const claim = await (shared ?? lead(execution, known, identity));
    if (claim.claim === "found") return settle(claim.record, execution.fingerprint);
    if (claim.claim === "own") return await claim.ended();
    if (claim.claim === "locked" && !(await waits.poll())) return { outcome: "in-progress" };
  }
}

/** A claim as duplicates may share it: the attempt itself stays with the call that made the claim. */
type SharedClaim = Exclude<Claim<unknown>, { claim: "claimed" }> | { readonly claim: "claimed" };
type OwnClaim = SharedClaim | { readonly claim: "own"; ended(): Promise<Executed> };

function registryOf<Tx>({ database }: Execution<Tx>): InProcess<SharedClaim> {
  const found = registries.get(database) as InProcess<SharedClaim> | undefined;
  const registry = found ?? inProcess<SharedClaim>();
  if (found === undefined) registries.set(database, registry);
  return registry;
}

/** Makes the one claim of this process for an identity, which duplicates that arrive meanwhile share. */
async function lead<Tx>(
  execution: Execution<Tx>,
  known: InProcess<SharedClaim>,
  identity: string,
): Promise<OwnClaim> {
  const operationId = execution.runtime.newId();
  const settings: AttemptSettings = { ...execution.settings, operationId };
  const claiming = claimed(execution, settings, known.finished.has(identity));
  known.claiming.set(identity, claiming.then(shareable));
  known.claiming.get(identity)?.catch(() => {}); // its owner sees the error; nobody else may be there
  let claim: Claim<Tx>;
  try {
    claim = await claiming;
  } finally {
    known.claiming.delete(identity);
  }
  if (claim.claim === "found") known.finished.add(identity);
  if (claim.claim !== "claimed") return claim;
  const { attempt } = claim;
  const run = registered(known, identity, { fingerprint: execution.fingerprint, operationId });
  return { claim: "own", ended: () => run(() => runClaimed(execution, settings, attempt)) };
}

function shareable(claim: Claim<unknown>): SharedClaim {
  return claim.claim === "claimed" ? { claim: "claimed" } : claim;
}

async function claimed<Tx>(execution: Execution<Tx>, settings: AttemptSettings, likely: boolean): Promise<Claim<Tx>> {
  const { database, identity } = execution;
  try {
    const record = likely ? await database.records.find(identity) : undefined;
    return record === undefined ? await database.records.claim(identity, settings) : { claim: "found", record };
  } catch (error) {
    if (error instanceof IdemkitError || database.classify(error) === "fatal") throw error;
    throw unavailable(error);
  }
}

/** Enters the attempt at once, so that no duplicate slips between the claim and its entry; leaves it at its end. */
function registered(
  known: InProcess<SharedClaim>,
  identity: string,
  entry: { readonly fingerprint: Uint8Array; readonly operationId: string },
): (work: () => Promise<Executed>) => Promise<Executed> {
  let settle = (): void => {};
  const settled = new Promise<void>((resolve) => (settle = resolve));
  known.running.set(identity, { ...entry, settled });
  return async (work) => {
    try {
      const ended = await work();
      if ("record" in ended) known.finished.add(identity);
      return ended;
    } finally {
      known.running.delete(identity);
      settle();
    }
  };
}
