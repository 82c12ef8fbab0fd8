import type { RelaySettings } from "./options.ts";
import type { ParkedKey } from "./parked-key.ts";
import type { TurnResult } from "./turn.ts";

/** What a relay has done so far, and what it says of it. */
export interface Tally {
  readonly counts: {
    readonly published: number;
    readonly parked: number;
    readonly failures: number;
    readonly batches: number;
  };
  count(result: TurnResult): void;
  /** Something failed and will be tried again: the log hears of the first failure in a row. */
  failed(error: unknown): void;
}

/** Counts from zero. */
export function newTally({ logger, onParked }: Pick<RelaySettings, "logger" | "onParked">): Tally {
  const counts = { published: 0, parked: 0, failures: 0, batches: 0 };
  let down = false;
  return {
    counts,
    failed: (error) => {
      counts.failures += 1;
      if (!down) logger.error(`idemkit: the relay could not publish and goes on trying: ${String(error)}`);
      down = true;
    },
    count: ({ read, published, parked }) => {
      if (read > 0) counts.batches += 1;
      counts.published += published;
      counts.parked += parked.length;
      if (down && published > 0) logger.info("idemkit: the relay publishes again");
      if (published > 0) down = false;
      for (const { topic, reason } of parked.filter(isFirstOfTopic)) {
        const keys = parked.filter((each) => each.topic === topic).length;
        logger.error(
          `idemkit: events of ${topic} were refused and ${keys} of its keys are parked: ${reason}`,
        );
      }
      parked.forEach((each) => onParked(each));
    },
  };
}

/** A topic that is refused as a whole must not fill the log with its keys. */
function isFirstOfTopic({ topic }: ParkedKey, at: number, all: readonly ParkedKey[]): boolean {
  return all.findIndex((other) => other.topic === topic) === at;
}
