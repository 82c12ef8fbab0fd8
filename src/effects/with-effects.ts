import { jsonCodec } from "../core/codec.ts";
import type { Stored } from "../core/codec.ts";
import type { Completion, Executed } from "../core/execution.ts";
import { commandOf, fingerprintOf } from "../core/fingerprint.ts";
import { checkIdentity } from "../core/identity.ts";
import { operationOptionNames, registerOperation, settingsOf } from "../core/operation.ts";
import type { OperationOptions } from "../core/operation.ts";
import type { Outcome } from "../core/outcome.ts";
import type { Identity } from "../core/ports.ts";
import { handled, outcomeOf } from "../core/values.ts";
import type { Discarded } from "../core/values.ts";
import { checkFunction, checkNames, invalid } from "../internal/options.ts";
import { systemRuntime } from "../internal/runtime.ts";
import type { PostgresDatabase } from "../postgres/connections.ts";
import { checkPostgresDatabase } from "../postgres/database.ts";
import { executeWithEffects } from "./execute-with-effects.ts";
import { leaseSettingsOf } from "./execution.ts";
import type { EffectsContext, LeaseOptions, OnceWithEffects } from "./execution.ts";

/** Settings of an operation that calls other systems. */
export interface EffectsOptions extends OperationOptions, LeaseOptions {}

/** Whose key it is, the key, and what is asked for. */
export interface KeyedCommand<C> {
  readonly scope: string;
  readonly key: string;
  readonly command: C;
}

/** An operation of the external mode, below HTTP. */
export interface OperationWithEffects<C, V> {
  (call: KeyedCommand<C>): Promise<Outcome<V>>;
  readonly operation: string;
  readonly database: PostgresDatabase<unknown>;
  /** Goes on with an operation whose attempt is dead; the rescuer calls it. */
  resume(identity: Identity, fingerprint: Uint8Array, command: Uint8Array): Promise<Outcome<V>>;
}

const effectsOptionNames = [...operationOptionNames, "leaseMs", "heartbeatMs"];
/** Calls to other systems take longer than statements. */
const defaultTimeoutMs = 120_000;
const commands = jsonCodec<unknown>();

/**
 * Makes an operation that calls other systems take effect once. No transaction is open during a call: each call is an
 * `effect` whose key and intent commit before it and whose result commits after it, and an attempt after a crash goes on
 * from that ledger. Where the outcome of a call cannot be known, the operation says so (`uncertain`) instead of guessing.
 *
 * The handler gets its command back as JSON, also in its first run, and may run more than once.
 * @throws IdemkitError `option_invalid`, `retention_out_of_range`, `operation_duplicate`.
 */
export function withEffects<Tx, C, T>(
  database: PostgresDatabase<Tx>,
  options: EffectsOptions,
  handler: (command: Stored<C>, once: OnceWithEffects<Tx>) => Promise<T> | T,
): OperationWithEffects<C, Stored<T>> {
  checkPostgresDatabase(database);
  checkNames("withEffects", options, effectsOptionNames);
  checkFunction("handler", handler);
  const settings = settingsOf({ handlerTimeoutMs: defaultTimeoutMs, ...withoutLease(options) });
  const lease = leaseSettingsOf(options);
  const { operation } = options;
  registerOperation(database, operation);
  const codec = jsonCodec<T>();

  async function execute(
    identity: Identity,
    fingerprint: Uint8Array,
    command: Uint8Array,
  ): Promise<Outcome<Stored<T>>> {
    const discarded: Discarded<Stored<T>> = {};
    const run = (context: EffectsContext<Tx>): Promise<Completion> =>
      handled(
        (notFinal) => handler(commands.decode(command) as Stored<C>, { ...context, notFinal }),
        codec,
        discarded,
      );
    const given = { database, identity, fingerprint, settings, lease, command, runtime: systemRuntime, run };
    const ended: Executed = await executeWithEffects(given);
    return outcomeOf(ended, codec, discarded);
  }

  async function call({ scope, key, command }: KeyedCommand<C>): Promise<Outcome<Stored<T>>> {
    if (command === undefined) throw invalid("command", "must be given");
    const identity = { scope, operation, key };
    checkIdentity(identity);
    return execute(identity, fingerprintOf(commandOf(command)), commands.encode(command));
  }

  return Object.assign(call, { operation, database, resume: execute });
}

function withoutLease({
  leaseMs: _lease,
  heartbeatMs: _heartbeat,
  ...options
}: EffectsOptions): OperationOptions {
  return options;
}
