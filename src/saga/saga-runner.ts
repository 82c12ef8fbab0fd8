import type { Json } from "../core/canonical-json.ts";
import { heartbeat } from "../effects/heartbeat.ts";
import { IdemkitError, isIdemkitError } from "../errors.ts";
import { startLoop } from "../internal/loop.ts";
import type { Running } from "../internal/loop.ts";
import { harmless, harmlessLogger } from "../internal/harmless.ts";
import { checkInteger, checkNames, invalid } from "../internal/options.ts";
import { systemRuntime } from "../internal/runtime.ts";
import type { PostgresDatabase } from "../postgres/connections.ts";
import { checkPostgresDatabase } from "../postgres/database.ts";
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
  /** @defaultValue a third of `leaseMs` */
  readonly heartbeatMs?: number;
  /**
   * Pause between two looks at an uncertain saga, whose `recover` functions are asked again.
   * @defaultValue 60_000
   */
  readonly uncertainEveryMs?: number;
  /**
   * Told of each try of a step that failed, and of sagas that can't be looked for.
   * @defaultValue `console`
   */
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
  "uncertainEveryMs",
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
  checkPostgresDatabase(database);
  if (!Array.isArray(definitions)) throw invalid("definitions", "must be an array of sagas");
  const { pollMs, concurrency, leaseMs, heartbeatMs, uncertainEveryMs, logger, onMoved } =
    settingsOf(options);
  const store = sagaStore(database.connections, database.schema, leaseMs);
  const beat = heartbeat(database.connections, { renewal: store.renewal, heartbeatMs });
  const shared = { database, store, uncertainEveryMs, runtime: systemRuntime };
  const byName = namedOf(definitions);
  const busy = new Set<Promise<void>>();
  const report = (what: string, error: unknown): void =>
    logger.error(`idemkit: ${what}: ${error instanceof Error ? error.message : String(error)}`);

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
    const { sagaId, name } = saga;
    const definition = byName.get(name);
    if (definition === undefined) return;
    const lost = new AbortController();
    const stopBeat = beat.keep(saga.attemptId, () => lost.abort(new IdemkitError("attempt_lost")));
    try {
      const failed = (step: string, error: unknown): void =>
        report(`step ${step} of saga ${name} failed and is tried again (${sagaId})`, error);
      const state = await advance({ ...shared, definition, saga, signal: lost.signal, stopped, failed });
      onMoved({ sagaId, name, state });
    } catch (error) {
      if (!isIdemkitError(error, "attempt_lost")) report(`saga ${name} stopped`, error);
    } finally {
      stopBeat();
    }
  }

  const loop = startLoop({
    everyMs: pollMs,
    work,
    onError: (error) => report("looking for sagas failed", error),
  });
  // The steps in progress are finished, and their sagas given back.
  const stop = async (): Promise<void> => {
    await loop.stop();
    await Promise.all(busy);
  };
  return { stop, [Symbol.asyncDispose]: stop };
}

type Settings = Required<SagasOptions>;

function settingsOf(options: SagasOptions): Settings {
  checkNames("startSagas", options, optionNames);
  const day = 86_400_000;
  const { leaseMs = 30_000, heartbeatMs = Math.floor(leaseMs / 3) } = options;
  return {
    pollMs: checkInteger("pollMs", options.pollMs ?? 500, 10, day),
    concurrency: checkInteger("concurrency", options.concurrency ?? 10, 1, 1000),
    leaseMs: checkInteger("leaseMs", leaseMs, 300, day),
    heartbeatMs: checkInteger("heartbeatMs", heartbeatMs, 50, Math.floor(leaseMs / 3)),
    uncertainEveryMs: checkInteger("uncertainEveryMs", options.uncertainEveryMs ?? 60_000, 10, day),
    logger: harmlessLogger(options.logger ?? console),
    onMoved: harmless(options.onMoved ?? (() => {})),
  };
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
