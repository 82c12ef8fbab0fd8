import type { EventMessage, Published, Publisher } from "../core/event.ts";
import { checkInteger, checkNames } from "../internal/options.ts";
import { orderKey } from "./relay/batch.ts";

/** Settings of {@link inProcessPublisher}. */
export interface InProcessOptions {
  /**
   * How many keys are delivered at the same time; the events of one key go one after the other.
   * @defaultValue 8
   */
  readonly concurrency?: number;
}

/** What takes an event, such as the `process` of an inbox. */
export type Receiver = (event: EventMessage, options: { readonly signal?: AbortSignal }) => Promise<unknown>;

/**
 * A publisher without a broker: it hands each event to functions of this process, such as an inbox's `process`, at least
 * once and within a key in order. Every receiver gets every event; a receiver that rejects gets it again, and so do the
 * others, which is why each needs an inbox.
 * @throws IdemkitError `option_invalid`.
 */
export function inProcessPublisher(
  receivers: readonly Receiver[],
  options: InProcessOptions = {},
): Publisher {
  checkNames("inProcessPublisher", options, ["concurrency"]);
  const concurrency = checkInteger("concurrency", options.concurrency ?? 8, 1, 1000);

  async function deliver(event: EventMessage, signal: AbortSignal | undefined): Promise<Published> {
    try {
      signal?.throwIfAborted();
      for (const receive of receivers) await receive(event, signal === undefined ? {} : { signal });
      return { published: "acknowledged" };
    } catch (error) {
      return { published: "failed", error };
    }
  }

  return {
    publish: async (messages, signal) => {
      const results: Published[] = [];
      const queues = queuesOf(messages);
      const drain = async (): Promise<void> => {
        for (const queue of queues) {
          let result: Published = { published: "acknowledged" };
          for (const { at, message } of queue) {
            // Behind one that failed nothing of its key may be delivered.
            if (result.published === "acknowledged") result = await deliver(message, signal);
            results[at] = result;
          }
        }
      };
      await Promise.all(Array.from({ length: concurrency }, drain));
      return results;
    },
    [Symbol.asyncDispose]: async () => {},
  };
}

interface Numbered {
  readonly at: number;
  readonly message: EventMessage;
}

/** The messages by key, as one iterator that all who drain it share. */
function queuesOf(messages: readonly EventMessage[]): IterableIterator<Numbered[]> {
  const queues = new Map<string, Numbered[]>();
  for (const [at, message] of messages.entries()) {
    const name = orderKey(message);
    const queue = queues.get(name);
    if (queue === undefined) queues.set(name, [{ at, message }]);
    else queue.push({ at, message });
  }
  return queues.values();
}
