import { executeBy } from "../core/execute.ts";
import type { Completion, Executed } from "../core/execution.ts";
import type { Claimed, OperationRecord } from "../core/ports.ts";
import { unavailable } from "../core/attempt.ts";
import { IdemkitError, isIdemkitError } from "../errors.ts";
import { backoffMs } from "../internal/backoff.ts";
import type { Call } from "../postgres/connections.ts";
import { statementOf } from "../postgres/statement.ts";
import { effects } from "./effect.ts";
import type { EffectsContext, EffectsExecution } from "./execution.ts";
import { heartbeat } from "./heartbeat.ts";
import type { Heartbeat } from "./heartbeat.ts";
import { asLost, leaseStore } from "./lease-store.ts";
import type { Lease, LeaseStore } from "./lease-store.ts";
import { phases } from "./phases.ts";
import type { OpenPhases } from "./phases.ts";

/** How often a run is repeated after a serialization failure of one of its transactions. */
const maxRuns = 10;
/** How often the record is looked for after a COMMIT whose answer was lost. */
const maxLooks = 5;
const backoff = { baseMs: 20, maxMs: 1000 };

/**
 * Executes an operation of the external mode once: a committed claim with a renewed lease instead of an open transaction,
 * a ledger of its calls, and one compare-and-set at the end.
 * @throws IdemkitError `idempotency_unavailable`, and what the handler threw where nothing renders it.
 */
export function executeWithEffects<Tx>(execution: EffectsExecution<Tx>): Promise<Executed> {
  const { database, identity, fingerprint, command, lease, runtime } = execution;
  const store = leaseStore(database.connections, database.schema, lease.leaseMs);
  const claim = async (operationId: string): Promise<Claimed<Lease>> => {
    const given = { identity, operationId, fingerprint, command, attemptId: runtime.newId() };
    const attempt = await store.claim(given);
    if (attempt !== undefined) return { claim: "claimed", attempt };
    const known = await database.records.find(identity);
    if (known !== undefined) return known;
    // Expired, or given back since: make room, and let the caller look again.
    await store.forget(identity);
    const second = await store.claim(given);
    return second === undefined ? { claim: "locked" } : { claim: "claimed", attempt: second };
  };
  return executeBy(execution, {
    find: () => database.records.find(identity),
    claim,
    run: (attempt: Lease) => runLeased({ execution, store, lease: attempt }),
  });
}

/** One attempt and what it works with. */
interface Leased<Tx> {
  readonly execution: EffectsExecution<Tx>;
  readonly store: LeaseStore;
  readonly lease: Lease;
}

/** One run of the handler and what became of it beside its completion. */
interface Run<Tx> {
  readonly open: OpenPhases<Tx>;
  readonly context: EffectsContext<Tx>;
  readonly isUncertain: () => boolean;
}

/** One for each database object and pair of times: the leases of one statement are alike. */
const heartbeats = new WeakMap<object, Map<string, Heartbeat>>();

function heartbeatOf<Tx>({ database, lease }: EffectsExecution<Tx>): Heartbeat {
  const ofDatabase = heartbeats.get(database) ?? new Map<string, Heartbeat>();
  heartbeats.set(database, ofDatabase);
  const times = `${lease.leaseMs}/${lease.heartbeatMs}`;
  const known = ofDatabase.get(times);
  if (known !== undefined) return known;
  const statement = statementOf("lease-renew", database.schema);
  const renewal = (attemptIds: readonly string[]): Call => ({
    ...statement,
    values: [attemptIds, lease.leaseMs / 1000],
  });
  const made = heartbeat(database.connections, { renewal, heartbeatMs: lease.heartbeatMs });
  ofDatabase.set(times, made);
  return made;
}

async function runLeased<Tx>(leased: Leased<Tx>): Promise<Executed> {
  const { execution, lease } = leased;
  const controller = new AbortController();
  const stop = heartbeatOf(execution).keep(lease.attemptId, () => {
    controller.abort(new IdemkitError("attempt_lost", { details: { operationId: lease.operationId } }));
  });
  const timer = setTimeout(() => {
    controller.abort(new IdemkitError("handler_timed_out", { details: { operationId: lease.operationId } }));
  }, execution.settings.handlerTimeoutMs);
  try {
    return await runs(leased, controller.signal);
  } finally {
    clearTimeout(timer);
    stop();
  }
}

/** Runs the handler, again where a transaction of it was refused through no fault of its own. */
async function runs<Tx>(leased: Leased<Tx>, signal: AbortSignal): Promise<Executed> {
  const { execution } = leased;
  const { database, runtime } = execution;
  for (let tries = 1; ; tries += 1) {
    const run = await startRun(leased, signal, tries);
    try {
      return await ended(leased, run, await untilAborted(execution.run(run.context), signal));
    } catch (error) {
      await run.open.rollback();
      const again =
        database.classify(error) === "retry" && tries < maxRuns && execution.canRunAgain?.() !== false;
      if (!again) return failed(leased, run, error);
      await runtime.sleep(backoffMs(tries, backoff, runtime.random), signal);
    }
  }
}

async function startRun<Tx>(leased: Leased<Tx>, signal: AbortSignal, tries: number): Promise<Run<Tx>> {
  const { execution, store, lease } = leased;
  const ledger = lease.attempt === 1 && tries === 1 ? [] : await store.effects(lease.operationId);
  const { idleTimeoutMs, lockTimeoutMs } = execution.settings;
  const open = phases({ database: execution.database, lease, store, ledger, idleTimeoutMs, lockTimeoutMs });
  let uncertain = false;
  const effect = effects({
    operationId: lease.operationId,
    ledger: {
      intend: (name, key) => store.intend(lease, name, key),
      end: (name, state, result) => store.end(lease, name, state, result),
    },
    rows: ledger,
    signal,
    runtime: execution.runtime,
    inTransaction: open.isOpen,
    onUncertain: () => {
      uncertain = true;
    },
  });
  const { operationId, attempt, identity } = lease;
  const context = {
    key: identity.key,
    operationId,
    attempt,
    signal,
    effect,
    transaction: open.transaction,
    phase: open.phase,
  };
  return { open, context, isUncertain: () => uncertain };
}

/** A handler that does not heed its signal is left alone; its statements fail by the compare-and-set. */
async function untilAborted(running: Promise<Completion>, signal: AbortSignal): Promise<Completion> {
  signal.throwIfAborted();
  const aborted = new Promise<never>((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
  return Promise.race([running, aborted]);
}

async function ended<Tx>(leased: Leased<Tx>, run: Run<Tx>, completion: Completion): Promise<Executed> {
  if (run.isUncertain()) return markUncertain(leased, run);
  if (completion.disposition === "keep") return finish(leased, run, completion);
  await run.open.rollback();
  return settleUnkept(leased, run, completion);
}

async function failed<Tx>(leased: Leased<Tx>, run: Run<Tx>, error: unknown): Promise<Executed> {
  const { execution, store, lease } = leased;
  if (run.isUncertain()) return markUncertain(leased, run);
  if (isIdemkitError(error, "attempt_lost")) return { outcome: "in-progress" };
  const kind = execution.database.classify(error);
  if (
    execution.render === undefined ||
    kind === "retry" ||
    isIdemkitError(error, "idempotency_unavailable")
  ) {
    await store.release(lease).catch(() => {}); // else its lease ends by itself
    throw kind === "retry" ? unavailable(error) : error;
  }
  return settleUnkept(leased, run, await execution.render(error));
}

async function settleUnkept<Tx>(leased: Leased<Tx>, run: Run<Tx>, completion: Completion): Promise<Executed> {
  const { store, lease } = leased;
  if (completion.disposition !== "discard") return finish(leased, run, completion);
  await store.release(lease);
  return { outcome: "executed", disposition: "discard", operationId: lease.operationId };
}

async function markUncertain<Tx>({ store, lease }: Leased<Tx>, run: Run<Tx>): Promise<Executed> {
  await run.open.rollback();
  await store.uncertain(lease);
  return { outcome: "uncertain", operationId: lease.operationId };
}

async function finish<Tx>(
  leased: Leased<Tx>,
  run: Run<Tx>,
  { disposition, answer }: Exclude<Completion, { disposition: "discard" }>,
): Promise<Executed> {
  const { execution, store, lease } = leased;
  const { operationId } = lease;
  const record: OperationRecord = { ...answer, operationId, disposition, fingerprint: execution.fingerprint };
  try {
    await run.open.commit(store.finish(lease, record, execution.settings.retentionMs));
    return { outcome: "executed", disposition, record };
  } catch (error) {
    const named = asLost(error);
    if (execution.database.classify(named) !== "unavailable") throw named;
    return lostCommit(leased, named);
  }
}

/** COMMIT was sent and its answer lost: the record tells, once the database is back. */
async function lostCommit<Tx>({ execution, store, lease }: Leased<Tx>, cause: unknown): Promise<Executed> {
  const { database, identity, runtime } = execution;
  for (let looks = 0; looks < maxLooks; looks += 1) {
    await runtime.sleep(backoffMs(looks, backoff, runtime.random));
    const known = await database.records.find(identity).catch(() => undefined);
    if (known?.claim === "found" && known.record.operationId === lease.operationId) {
      return { outcome: "executed", disposition: known.record.disposition, record: known.record };
    }
  }
  await store.release(lease).catch(() => {});
  throw unavailable(cause);
}
