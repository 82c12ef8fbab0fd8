/** One way for a request to go wrong. `cut` ones drop the connection at once; a time-out keeps it and never answers. */
export type Fault =
  | "timeout-after"
  | "timeout-before"
  | "cut-after"
  | "cut-before"
  | "error"
  | "slow"
  /** Any request is refused. */
  | "refuse"
  /** A charge is refused; a refund is not. */
  | "decline"
  | "die-after"
  | "die-before";

/** How the provider behaves. */
export interface Switches {
  /** Whether a repeated key gets the first answer instead of a second charge. */
  readonly honoursKeys: boolean;
  /** Whether it can be asked what became of a key. */
  readonly lookUp: boolean;
  readonly slowMs: number;
  /** The faults of the next requests, in order, before anything is left to chance. */
  readonly next: readonly Fault[];
  /** How likely each request is to go wrong, from 0 to 1, and how. */
  readonly faultRate: number;
  readonly faults: readonly Fault[];
  readonly seed: number;
  /** Where events go; nowhere while empty. */
  readonly webhookUrl: string;
  /** `whsec_` and base64, as Standard Webhooks writes it. */
  readonly webhookSecret: string;
  readonly webhooksDoubled: boolean;
  readonly webhooksReordered: boolean;
}

/** A provider that does what it should. */
export const wellBehaved: Switches = {
  honoursKeys: true,
  lookUp: true,
  slowMs: 500,
  next: [],
  faultRate: 0,
  faults: ["timeout-after", "timeout-before", "error", "slow"],
  seed: 1,
  webhookUrl: "",
  webhookSecret: "whsec_cGF5bWVudHMtcHJvdmlkZXItc2VjcmV0",
  webhooksDoubled: false,
  webhooksReordered: false,
};

/** The switches with some of them turned. @throws TypeError naming one that isn't there, or of another type */
export const turned = (switches: Switches, changes: unknown): Switches => {
  if (typeof changes !== "object" || changes === null) {
    throw new TypeError("switches must be an object");
  }
  for (const [name, value] of Object.entries(changes)) {
    const known = (wellBehaved as unknown as Record<string, unknown>)[name];
    if (
      known === undefined ||
      typeof known !== typeof value ||
      Array.isArray(known) !== Array.isArray(value)
    ) {
      throw new TypeError(`there is no switch ${name} of this type`);
    }
  }
  return { ...switches, ...changes };
};

/** What goes wrong with each request, one after the other. */
export interface FaultSource {
  next(): Fault | undefined;
}

/** The faults that were asked for, then those of chance; the same seed gives the same ones. */
export const faultsOf = ({ next, faultRate, faults, seed }: Switches): FaultSource => {
  const queue = [...next];
  const random = randomOf(seed);
  return {
    next: () => {
      const queued = queue.shift();
      if (queued !== undefined) {
        return queued;
      }
      return random() < faultRate ? faults[Math.floor(random() * faults.length)] : undefined;
    },
  };
};

/** Park and Miller's generator: small, and good enough to choose faults. */
const randomOf = (seed: number): (() => number) => {
  let state = (Math.abs(Math.trunc(seed)) % (MODULUS - 1)) + 1;
  return () => {
    state = (state * 48_271) % MODULUS;
    return state / MODULUS;
  };
};

const MODULUS = 2 ** 31 - 1;
