/** Another system with a ledger of its own, in this process: what it was asked, and what took effect there. */
export interface Provider {
  /** Charges that took effect, by the key that was sent. */
  readonly charges: ReadonlyMap<string, number>;
  /** What took effect in all; a provider that ignores keys charges twice for one key. */
  readonly total: () => number;
  charge(key: string, amount: number): Promise<{ readonly chargeId: string }>;
  lookUp(key: string): Promise<{ readonly chargeId: string } | undefined>;
}

/** How the next calls go wrong: `after` and `before` time out after or before the charge. */
export type Fault = "after" | "before" | "none";

export interface ProviderOptions {
  readonly honoursKeys?: boolean;
  readonly faults?: Fault[];
}

export function provider({ honoursKeys = true, faults = [] }: ProviderOptions = {}): Provider {
  const charges = new Map<string, number>();
  let total = 0;
  return {
    charges,
    total: () => total,
    charge: (key, amount) => {
      const fault = faults.shift() ?? "none";
      if (fault === "before") return Promise.reject(new Error("timed out"));
      if (!honoursKeys || !charges.has(key)) {
        charges.set(key, amount);
        total += 1;
      }
      return fault === "after"
        ? Promise.reject(new Error("timed out"))
        : Promise.resolve({ chargeId: `ch-${key}` });
    },
    lookUp: (key) => Promise.resolve(charges.has(key) ? { chargeId: `ch-${key}` } : undefined),
  };
}
