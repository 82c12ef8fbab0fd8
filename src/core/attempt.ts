import { IdemkitError } from "../errors.ts";
import { backoffMs } from "../internal/backoff.ts";
import type { Completion, Executed, Execution } from "./execution.ts";
import { sameFingerprint } from "./fingerprint.ts";
import { withSignal } from "./lazy-signal.ts";
import type { Attempt, AttemptSettings, Claim, OperationRecord } from "./ports.ts";

/**
 * How often an operation whose transaction was refused (serialization failure, deadlock, a COMMIT whose answer was lost)
 * is taken up again before the caller is asked to; with the backoff below some three seconds.
 */
const maxTries = 10;
const backoff = { baseMs: 10, maxMs: 1000 };

/** The transaction is certainly not committed, or it is not known whether it is: claim again and see. */
interface Again {
  readonly again: true;
  readonly cause: unknown;
  /** Another attempt held the key when we came back. */
  readonly elsewhere?: true;
}

/**
 * Runs a claimed operation to its end, taking it up again where the database asked for that. Where another process has
 * taken it up meanwhile and is still at it, the answer is "in progress".
 * @throws IdemkitError `idempotency_unavailable` when that did not help; whatever the handler threw, where nothing
 * renders it.
 */
export async function runClaimed<Tx>(
  execution: Execution<Tx>,
  settings: AttemptSettings,
  first: Attempt<Tx>,
): Promise<Executed> {
  let ended = await runOn(execution, settings, first);
  for (let tries = 1; "again" in ended && tries < maxTries; tries += 1) {
    await execution.runtime.sleep(backoffMs(tries, backoff, execution.runtime.random));
    ended = await takeUp(execution, settings, ended.cause);
  }
  if (!("again" in ended)) return ended;
  // A lost COMMIT is not told as "in progress": the holder may be our own backend, which nobody runs any more.
  if (ended.elsewhere && execution.database.classify(ended.cause) !== "unavailable") {
    return { outcome: "in-progress" };
  }
  throw unavailable(ended.cause);
}

async function takeUp<Tx>(
  execution: Execution<Tx>,
  settings: AttemptSettings,
  cause: unknown,
): Promise<Executed | Again> {
  let claim: Claim<Tx>;
  try {
    claim = await execution.database.records.claim(execution.identity, settings);
  } catch (error) {
    return againOrThrow(execution, error);
  }
  switch (claim.claim) {
    case "locked": // by our own lost backend, or by another process: either way its end decides
      return { again: true, cause, elsewhere: true };
    case "found":
      return settle(claim.record, execution.fingerprint, settings.operationId);
    case "uncertain": // of another mode, after a change of the operation's mode between two deployments
      return { outcome: "uncertain", operationId: claim.operationId };
    case "claimed":
      if (execution.canRunAgain?.() !== false) return runOn(execution, settings, claim.attempt);
      await claim.attempt.rollback();
      throw unavailable(cause);
  }
}

/** Compares a record that is there with what this call wanted; its own record is its own result. */
export function settle(record: OperationRecord, fingerprint: Uint8Array, operationId?: string): Executed {
  if (!sameFingerprint(record.fingerprint, fingerprint)) return { outcome: "mismatch" };
  if (record.operationId !== operationId) return { outcome: "replayed", record };
  return { outcome: "executed", disposition: record.disposition, record };
}

async function runOn<Tx>(
  execution: Execution<Tx>,
  settings: AttemptSettings,
  attempt: Attempt<Tx>,
): Promise<Executed | Again> {
  let completion: Completion;
  try {
    completion = await bounded(execution, settings.operationId, attempt.tx);
  } catch (error) {
    return failed(execution, settings, attempt, error);
  }
  if (completion.disposition === "keep") return keep(execution, settings, attempt, completion.answer);
  await attempt.rollback();
  return store(execution, settings, completion);
}

/** One run of the handler, which may not take longer than `handlerTimeoutMs`. */
function bounded<Tx>(execution: Execution<Tx>, operationId: string, tx: Tx): Promise<Completion> {
  const { identity, settings } = execution;
  const { target: context, abort } = withSignal({ tx, key: identity.key, operationId });
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      const error = new IdemkitError("handler_timed_out", { details: { operationId } });
      abort(error);
      reject(error);
    }, settings.handlerTimeoutMs);
    // oxlint-disable-next-line promise/catch-or-return -- both ends are handled here, without one more promise
    execution.run(context).then(
      (completion) => {
        clearTimeout(timer);
        resolve(completion);
      },
      (error: unknown) => {
        clearTimeout(timer);
        // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- passed on as the handler threw it
        reject(error);
      },
    );
  });
}

async function keep<Tx>(
  execution: Execution<Tx>,
  settings: AttemptSettings,
  attempt: Attempt<Tx>,
  answer: OperationRecordAnswer,
): Promise<Executed | Again> {
  const lost = attempt.lost();
  if (lost !== undefined) {
    // Cut off before COMMIT: nothing was stored, and a handler that was idle too long would be so again.
    await attempt.rollback();
    throw unavailable(lost);
  }
  const record = recordOf(execution, settings, "keep", answer);
  try {
    const end = await attempt.finish(record);
    return end === "committed" ? executed(record) : { again: true, cause: undefined };
  } catch (error) {
    // Where the answer to COMMIT was lost, the next claim finds our record, or the operation free again.
    const kind = execution.database.classify(error);
    if (kind === "retry" || kind === "unavailable") return { again: true, cause: error };
    return failed(execution, settings, attempt, error);
  }
}

/** The handler threw, or its transaction could not be committed: roll back first, then render. */
async function failed<Tx>(
  execution: Execution<Tx>,
  settings: AttemptSettings,
  attempt: Attempt<Tx>,
  error: unknown,
): Promise<Executed | Again> {
  const infrastructure = attempt.failedBy(error);
  await attempt.rollback();
  if (execution.database.classify(error) === "retry") return { again: true, cause: error };
  if (infrastructure && !(error instanceof IdemkitError)) throw unavailable(attempt.lost() ?? error);
  if (execution.render === undefined) throw error;
  return store(execution, settings, await execution.render(error));
}

/** Stores a refusal in a transaction of its own; a discarded run leaves nothing to store. */
async function store<Tx>(
  execution: Execution<Tx>,
  settings: AttemptSettings,
  completion: Completion,
): Promise<Executed | Again> {
  if (completion.disposition === "discard") {
    return { outcome: "executed", disposition: "discard", operationId: settings.operationId };
  }
  const record = recordOf(execution, settings, "refuse", completion.answer);
  try {
    const end = await execution.database.records.refuse(execution.identity, record, settings.retentionMs);
    return end === "committed" ? executed(record) : { again: true, cause: undefined };
  } catch (error) {
    return againOrThrow(execution, error);
  }
}

type OperationRecordAnswer = Pick<OperationRecord, "status" | "headers" | "body">;

function recordOf<Tx>(
  { fingerprint }: Execution<Tx>,
  { operationId }: AttemptSettings,
  disposition: "keep" | "refuse",
  { status, headers, body }: OperationRecordAnswer,
): OperationRecord {
  return { operationId, fingerprint, disposition, status, headers, body };
}

function executed(record: OperationRecord): Executed {
  return { outcome: "executed", disposition: record.disposition, record };
}

function againOrThrow<Tx>({ database }: Execution<Tx>, error: unknown): Again {
  const kind = database.classify(error);
  if (kind === "retry" || kind === "unavailable") return { again: true, cause: error };
  throw error;
}

/** A failure of the infrastructure, told as such: never a 500, and never as a conflict. */
export function unavailable(cause: unknown): IdemkitError {
  return new IdemkitError("idempotency_unavailable", { cause });
}
