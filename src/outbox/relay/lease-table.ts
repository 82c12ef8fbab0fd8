import type { Runtime } from "../../internal/runtime.ts";
import type { Fence } from "./store.ts";

/** A shard that is ours until its lease runs out. */
export interface Lease extends Fence {
  /** Aborts when the shard is lost. */
  readonly signal: AbortSignal;
  /** Whether the lease certainly still holds: reckoned from when its last renewal was sent, so never too late. */
  isValid(): boolean;
}

/** What this process knows of its leases. */
export interface LeaseTable {
  get(shard: number): Lease | undefined;
  all(): readonly Lease[];
  add(fence: Fence, validUntilMs: number): void;
  renew(shard: number, validUntilMs: number): void;
  /** Takes a shard out and leaves what is in flight alone. */
  drop(shard: number): void;
  /** Takes a shard out and aborts what is in flight. */
  lose(shard: number): void;
}

interface Entry {
  readonly lease: Lease;
  readonly controller: AbortController;
  validUntilMs: number;
}

/** An empty one. */
export function leaseTable({ monotonicMs }: Pick<Runtime, "monotonicMs">): LeaseTable {
  const entries = new Map<number, Entry>();

  function add(fence: Fence, validUntilMs: number): void {
    const controller = new AbortController();
    const { signal } = controller;
    const isValid = (): boolean => !signal.aborted && monotonicMs() < entry.validUntilMs;
    const entry: Entry = { controller, validUntilMs, lease: { ...fence, signal, isValid } };
    lose(fence.shard);
    entries.set(fence.shard, entry);
  }

  function lose(shard: number): void {
    entries.get(shard)?.controller.abort();
    entries.delete(shard);
  }

  return {
    get: (shard) => entries.get(shard)?.lease,
    all: () => [...entries.values()].map(({ lease }) => lease),
    add,
    renew: (shard, validUntilMs) => {
      const entry = entries.get(shard);
      if (entry !== undefined) entry.validUntilMs = validUntilMs;
    },
    drop: (shard) => void entries.delete(shard),
    lose,
  };
}
