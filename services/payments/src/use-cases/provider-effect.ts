import { isIdemkitError } from "idemkit";
import type { Effect, EffectCall, EffectOptions } from "idemkit";
import type { Moved, Movement, Provider } from "../core/provider.ts";
import type { StoredRefusal } from "../core/refusal.ts";

/** One movement of money as an effect: what was said about a lost answer holds for it. */
const providerEffect = (provider: Provider, movement: Movement): EffectOptions<Moved> => ({
  run: (call: EffectCall) => provider.move(movement, call),
  recover: async (call: EffectCall) => {
    const { find } = provider;
    return find(movement.kind, call);
  },
  honoursKeys: provider.honoursKeys,
  deadlineMs: provider.deadlineMs,
  graceMs: provider.graceMs,
});

/** Moves money, once; a no of the provider is a value here, because there is something to undo first. */
export const moveOnce = async (
  effect: Effect,
  provider: Provider,
  movement: Movement,
): Promise<{ readonly moved: Moved } | { readonly refusal: StoredRefusal }> => {
  try {
    return { moved: await effect(movement.kind, providerEffect(provider, movement)) };
  } catch (error) {
    if (!isIdemkitError(error, "effect_refused")) {
      throw error;
    }
    return { refusal: error.details.refusal as StoredRefusal };
  }
};
