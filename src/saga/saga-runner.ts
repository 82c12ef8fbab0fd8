import type { Json } from "../core/canonical-json.ts";
import { heartbeat } from "../effects/heartbeat.ts";
import { IdemkitError, isIdemkitError } from "../errors.ts";
import { startLoop } from "../internal/loop.ts";
import type { Running } from "../internal/loop.ts";
import { checkInteger, checkNames, invalid } from "../internal/options.ts";
import { systemRuntime } from "../internal/runtime.ts";
import type { PostgresDatabase } from "../postgres/connections.ts";
import { advance } from "./advance.ts";
import type { SagaDefinition } from "./definition.ts";
import { sagaStore } from "./saga-store.ts";
import type { LeasedSaga } from "./saga-store.ts";

/** Settings of {@link startSagas}. */
export interface SagasOptions {
  /**
   * Pause between two looks for sagas that are due.
   * @defaultValue 500
   */
  readonly pollMs?: number;
  /**
   * How many sagas one process works on at once.
   * @defaultValue 10
   */
  readonly concurrency?: number;
  /**
   * How long a runner owns a saga without a sign of life: the time after which a crash is noticed.
   * @defaultValue 30_000
   */
  readonly leaseMs?: number;
  /** @defaultValue 10_000 */
  readonly heartbeatMs?: number;
  /** @defaultValue `console` */
  readonly logger?: { error(message: string): void };
  /** Told of each saga that stops being worked on: it ended, waits, or is uncertain. */
  readonly onMoved?: (moved: {
    readonly sagaId: string;
    readonly name: string;
    readonly state: string;
  }) => void;
}

const optionNames: readonly (keyof SagasOptions)[] = [
  "pollMs",
  "concurrency",
  "leaseMs",
  "heartbeatMs",
  "logger",
  "onMoved",
];

/**
 * Runs sagas: leases those that are due, does their steps, and goes on with what dead runners left. Start it in any number
 * of processes; a lease and a compare-and-set on it keep them apart.
 * @throws IdemkitError `option_invalid`.
 */
export function startSagas<Tx>(
  database: PostgresDatabase<Tx>,
  definitions: readonly SagaDefinition<never, Tx>[],
  options: SagasOptions = {},
): Running {
  checkNames("startSagas", options, optionNames);
  const day = 86_400_000;
  const pollMs = checkInteger("pollMs", options.pollMs ?? 500, 10, day);
  const concurrency = checkInteger("concurrency", options.concurrency ?? 10, 1, 1000);
  const leaseMs = checkInteger("leaseMs", options.leaseMs ?? 30_000, 300, day);
  const heartbeatMs = checkInteger("heartbeatMs", options.heartbeatMs ?? 10_000, 50, Math.floor(leaseMs / 3));
  const { logger = console, onMoved } = options;
  const store = sagaStore(database.connections, database.schema, leaseMs);
  const beat = heartbeat(database.connections, { renewal: store.renewal, heartbeatMs });
  const byName = namedOf(definitions);
  const busy = new Set<Promise<void>>();

  async function work(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const room = concurrency - busy.size;
      const sagas = room === 0 ? [] : await store.claim([...byName.keys()], room);
      for (const saga of sagas) track(run(saga, signal));
      if (sagas.length < room) return;
      await Promise.race(busy);
    }
  }

  function track(running: Promise<void>): void {
    busy.add(running);
    void running.finally(() => busy.delete(running));
  }

  async function run(saga: LeasedSaga, stopped: AbortSignal): Promise<void> {
    const definition = byName.get(saga.name);
    if (definition === undefined) return;
    const lost = new AbortController();
    const stop = beat.keep(saga.attemptId, () => lost.abort(new IdemkitError("attempt_lost")));
    try {
      const state = await advance({
        database,
        store,
        definition,
        saga,
        signal: lost.signal,
        stopped,
        runtime: systemRuntime,
      });
      onMoved?.({ sagaId: saga.sagaId, name: saga.name, state });
    } catch (error) {
      if (isIdemkitError(error, "attempt_lost")) return;
      logger.error(
        `idemkit: saga ${saga.name} stopped: ${error instanceof Error ? error.message : String(error)}`,
      );
    } finally {
      stop();
    }
  }

  const loop = startLoop({
    everyMs: pollMs,
    work,
    onError: (error) =>
      logger.error(
        `idemkit: looking for sagas failed: ${error instanceof Error ? error.message : String(error)}`,
      ),
  });
  // The steps in progress are finished, and their sagas given back.
  const stop = async (): Promise<void> => {
    await loop.stop();
    await Promise.all(busy);
  };
  return { stop, [Symbol.asyncDispose]: stop };
}

function namedOf<Tx>(
  definitions: readonly SagaDefinition<never, Tx>[],
): ReadonlyMap<string, SagaDefinition<Json, Tx>> {
  const byName = new Map<string, SagaDefinition<Json, Tx>>();
  for (const definition of definitions) {
    if (byName.has(definition.name)) throw invalid(`saga ${definition.name}`, "is given twice");
    // Inputs come out of the saga's own row, where its own starter put them.
    byName.set(definition.name, definition);
  }
  if (byName.size === 0) throw invalid("definitions", "must name at least one saga");
  return byName;
}
