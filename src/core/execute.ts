import { IdemkitError } from "../errors.ts";
import { runClaimed, settle, unavailable } from "./attempt.ts";
import type { CallOf, Executed, Execution, Protocol } from "./execution.ts";
import { sameFingerprint } from "./fingerprint.ts";
import { checkIdentity, identityText } from "./identity.ts";
import { inProcessOf } from "./in-process.ts";
import type { Claiming, InProcess, Running, SharedClaim } from "./in-process.ts";
import type { Attempt, AttemptSettings, Claimed, Unclaimed } from "./ports.ts";
import { waiter } from "./waiter.ts";
import type { Waiter } from "./waiter.ts";

/**
 * Executes an operation of the atomic mode once.
 * @throws IdemkitError `idempotency_unavailable`, the errors of {@link checkIdentity}, and what the handler threw where
 * nothing renders it.
 */
export function execute<Tx>(execution: Execution<Tx>): Promise<Executed> {
  const { database, identity, settings } = execution;
  const { retentionMs, idleTimeoutMs, lockTimeoutMs, isolation } = settings;
  // Member by member: a spread of settings takes longer than all else here.
  const settingsFor = (operationId: string): AttemptSettings => {
    return { operationId, retentionMs, idleTimeoutMs, lockTimeoutMs, isolation };
  };
  return executeBy(execution, {
    find: () => database.records.find(identity),
    claim: (operationId) => database.records.claim(identity, settingsFor(operationId)),
    run: (attempt: Attempt<Tx>, operationId) => runClaimed(execution, settingsFor(operationId), attempt),
  });
}

/**
 * Claims an operation and runs it, or answers what is known of it already.
 *
 * The order of the questions follows from I6: what this process knows costs nothing, one read or claim at a time goes to
 * the database for an identity, and nobody holds a connection while waiting.
 */
export async function executeBy<Tx, A>(call: CallOf<Tx>, protocol: Protocol<A>): Promise<Executed> {
  checkIdentity(call.identity);
  const known = inProcessOf(call.database);
  const identity = identityText(call.identity);
  let waits: Waiter | undefined; // its time starts when it is first needed, which is hardly ever
  for (;;) {
    const running = known.running.get(identity);
    if (running !== undefined) {
      if (!sameFingerprint(running.fingerprint, call.fingerprint)) return { outcome: "mismatch" };
      waits ??= waiter(call, known, identity);
      if (!(await waits.until(running.settled))) return { outcome: "in-progress" };
      continue;
    }
    const shared = known.claiming.get(identity)?.claim;
    const claim = await (shared ?? lead(call, protocol, known, identity));
    if (claim.claim === "own") return claim.ended;
    if (claim.claim === "claimed") continue;
    const told = answerTo(claim, call.fingerprint);
    if (told !== undefined) return told;
    waits ??= waiter(call, known, identity);
    if (!(await waits.poll())) return { outcome: "in-progress" };
  }
}

/** What an operation that somebody else has, or had, means for this call; nothing where waiting may help. */
function answerTo(claim: Unclaimed, fingerprint: Uint8Array): Executed | undefined {
  if (claim.claim === "found") return settle(claim.record, fingerprint);
  if (claim.fingerprint !== undefined && !sameFingerprint(claim.fingerprint, fingerprint)) {
    return { outcome: "mismatch" };
  }
  return claim.claim === "uncertain" ? { outcome: "uncertain", operationId: claim.operationId } : undefined;
}

type OwnClaim = SharedClaim | { readonly claim: "own"; readonly ended: Promise<Executed> };

/** Makes the one claim of this process for an identity, which duplicates that arrive meanwhile share. */
async function lead<Tx, A>(
  call: CallOf<Tx>,
  protocol: Protocol<A>,
  known: InProcess,
  identity: string,
): Promise<OwnClaim> {
  const operationId = call.runtime.newId();
  const claiming = claimed(call, protocol, operationId, known.finished.has(identity));
  const entry: Claiming = { claim: claiming };
  known.claiming.set(identity, entry);
  let claim: Claimed<A>;
  try {
    claim = await claiming;
  } finally {
    known.claiming.delete(identity);
    entry.claim = undefined;
  }
  if (claim.claim === "found") known.finished.add(identity);
  if (claim.claim !== "claimed") return claim;
  const { attempt } = claim;
  const running = { fingerprint: call.fingerprint, operationId };
  return { claim: "own", ended: own(known, identity, running, () => protocol.run(attempt, operationId)) };
}

/** Even a claim can be refused: where sessions are serializable by default, the first one reads inside its transaction. */
const maxClaims = 5;

async function claimed<Tx, A>(
  { database }: CallOf<Tx>,
  protocol: Protocol<A>,
  operationId: string,
  likely: boolean,
): Promise<Claimed<A>> {
  for (let tries = 1; ; tries += 1) {
    try {
      return (likely ? await protocol.find() : undefined) ?? (await protocol.claim(operationId));
    } catch (error) {
      const kind = database.classify(error);
      if (kind === "retry" && tries < maxClaims) continue;
      if (error instanceof IdemkitError || kind === "fatal") throw error;
      throw unavailable(error);
    }
  }
}

/** Runs the attempt, entered at once, so that no duplicate slips between the claim and its entry, until its end. */
async function own(
  known: InProcess,
  identity: string,
  entry: Pick<Running, "fingerprint" | "operationId">,
  work: () => Promise<Executed>,
): Promise<Executed> {
  let leave: (() => void) | undefined;
  const settled = new Promise<void>((resolve) => {
    leave = resolve;
  });
  known.running.set(identity, { fingerprint: entry.fingerprint, operationId: entry.operationId, settled });
  try {
    const ended = await work();
    if ("record" in ended) known.finished.add(identity);
    return ended;
  } finally {
    known.running.delete(identity);
    leave?.();
  }
}
