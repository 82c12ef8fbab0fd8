import { IdemkitError } from "../errors.ts";
import { runClaimed, settle, unavailable } from "./attempt.ts";
import type { Executed, Execution } from "./execution.ts";
import { sameFingerprint } from "./fingerprint.ts";
import { checkIdentity, identityText } from "./identity.ts";
import { inProcessOf } from "./in-process.ts";
import type { InProcess, SharedClaim } from "./in-process.ts";
import type { Attempt, AttemptSettings, Claim } from "./ports.ts";
import { waiter } from "./waiter.ts";
import type { Waiter } from "./waiter.ts";

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
  const known = inProcessOf(execution.database);
  const identity = identityText(execution.identity);
  let waits: Waiter | undefined; // its time starts when it is first needed, which is hardly ever
  for (;;) {
    const running = known.running.get(identity);
    if (running !== undefined) {
      if (!sameFingerprint(running.fingerprint, execution.fingerprint)) return { outcome: "mismatch" };
      waits ??= waiter(execution, known, identity);
      if (!(await waits.until(running.settled))) return { outcome: "in-progress" };
      continue;
    }
    const shared = known.claiming.get(identity);
    const claim = await (shared ?? lead(execution, known, identity));
    if (claim.claim === "found") return settle(claim.record, execution.fingerprint);
    if (claim.claim === "own") return claim.ended;
    if (claim.claim !== "locked") continue;
    waits ??= waiter(execution, known, identity);
    if (!(await waits.poll())) return { outcome: "in-progress" };
  }
}

type OwnClaim = SharedClaim | { readonly claim: "own"; readonly ended: Promise<Executed> };

/** Makes the one claim of this process for an identity, which duplicates that arrive meanwhile share. */
async function lead<Tx>(execution: Execution<Tx>, known: InProcess, identity: string): Promise<OwnClaim> {
  const operationId = execution.runtime.newId();
  const settings: AttemptSettings = { ...execution.settings, operationId };
  const claiming = claimed(execution, settings, known.finished.has(identity));
  known.claiming.set(identity, claiming);
  let claim: Claim<Tx>;
  try {
    claim = await claiming;
  } finally {
    known.claiming.delete(identity);
  }
  if (claim.claim === "found") known.finished.add(identity);
  if (claim.claim !== "claimed") return claim;
  return { claim: "own", ended: own(execution, known, identity, { settings, attempt: claim.attempt }) };
}

/** Even a claim can be refused: where sessions are serializable by default, the first one reads inside its transaction. */
const maxClaims = 5;

async function claimed<Tx>(
  execution: Execution<Tx>,
  settings: AttemptSettings,
  likely: boolean,
): Promise<Claim<Tx>> {
  const { database, identity } = execution;
  for (let tries = 1; ; tries += 1) {
    try {
      const record = likely ? await database.records.find(identity) : undefined;
      return record === undefined
        ? await database.records.claim(identity, settings)
        : { claim: "found", record };
    } catch (error) {
      const kind = database.classify(error);
      if (kind === "retry" && tries < maxClaims) continue;
      if (error instanceof IdemkitError || kind === "fatal") throw error;
      throw unavailable(error);
    }
  }
}

/** Runs the attempt, entered at once, so that no duplicate slips between the claim and its entry, until its end. */
async function own<Tx>(
  execution: Execution<Tx>,
  known: InProcess,
  identity: string,
  { settings, attempt }: { readonly settings: AttemptSettings; readonly attempt: Attempt<Tx> },
): Promise<Executed> {
  const { fingerprint } = execution;
  let leave: (() => void) | undefined;
  const settled = new Promise<void>((resolve) => {
    leave = resolve;
  });
  known.running.set(identity, { fingerprint, operationId: settings.operationId, settled });
  try {
    const ended = await runClaimed(execution, settings, attempt);
    if ("record" in ended) known.finished.add(identity);
    return ended;
  } finally {
    known.running.delete(identity);
    leave?.();
  }
}
