import { randomUUID } from "node:crypto";

import { absent, done } from "idemkit";
import type { EffectOptions, OnceWithEffects, OperationWithEffects, Stored } from "idemkit";
import type { PoolClient } from "pg";

import type { Provider } from "./provider.ts";

export interface Charge {
  readonly amount: number;
}
export type Once = OnceWithEffects<PoolClient>;
export type Charged = Promise<{ readonly chargeId: string }>;

/** Charges through `psp`, then writes the charge in the final transaction. */
export function charging(
  psp: Provider,
  more: Partial<EffectOptions<{ chargeId: string }>> = {},
): (command: Charge, once: Once) => Charged {
  return async ({ amount }, { effect, transaction, operationId }) => {
    const { chargeId } = await effect("charge", {
      run: ({ key }) => psp.charge(key, amount),
      recover: async ({ key }) => {
        const found = await psp.lookUp(key);
        return found === undefined ? absent : done(found);
      },
      deadlineMs: 50,
      graceMs: 0,
      ...more,
    });
    await transaction((tx) => tx.query("insert into charge values ($1, $2)", [operationId, chargeId]));
    return { chargeId };
  };
}

export type Charging = OperationWithEffects<Charge, Stored<{ readonly chargeId: string }>>;
/** One call of the operation, under a key of its own. */
export function call(key: string = randomUUID()): { scope: string; key: string; command: Charge } {
  return { scope: "alice", key, command: { amount: 7 } };
}

/** A promise to settle by hand; `Promise.withResolvers` is missing in Node 20. */
export function deferred<T>(): { readonly promise: Promise<T>; resolve(value: T): void } {
  let settle: ((value: T) => void) | undefined;
  const promise = new Promise<T>((resolve) => {
    settle = resolve;
  });
  return { promise, resolve: (value) => settle?.(value) };
}
