import type { EventMessage, Published, Publisher } from "../core/event.ts";
import { IdemkitError } from "../errors.ts";
import { deferred } from "../internal/deferred.ts";
import { checkInteger, checkNames } from "../internal/options.ts";
import { systemRuntime } from "../internal/runtime.ts";
import type { HeaderStyle } from "./event-headers.ts";
import { pipeline } from "./pipeline.ts";
import type { KafkaClient } from "./port.ts";
import { isUnknownTopic, refusalOf } from "./refusals.ts";
import { failAll, keyOf, refuseAll, sendInOrder } from "./send-in-order.ts";
import type { Sending, SendSettings } from "./send-in-order.ts";

/** Settings of {@link kafkaPublisher}. */
export interface KafkaPublisherOptions {
  /**
   * How long one send may take, the client's retries included; then its messages failed, and the relay tries again.
   * @defaultValue 30_000
   */
  readonly sendTimeoutMs?: number;
  /**
   * Bytes of one partition's batch. Keep it below the topic's `max.message.bytes`, which holds for a batch as a whole.
   * @defaultValue 500_000: half of Kafka's default
   */
  readonly maxBatchBytes?: number;
  /**
   * How long a topic may be unknown before its messages are refused: a new topic takes a moment to be known everywhere.
   * @defaultValue 10_000
   */
  readonly unknownTopicMs?: number;
  /** @defaultValue "idemkit" */
  readonly headers?: HeaderStyle;
}

/** One call of `publish`. */
interface Publishing {
  readonly number: number;
  readonly sendings: readonly Sending[];
  readonly signal: AbortSignal | undefined;
}

/**
 * Publishes to Kafka with acks=all, an idempotent producer, and the partition of the key as {@link murmur2Partition}
 * computes it (R-DIST-IDEM-X2). One request is under way at a time, with everything that came meanwhile in the next, so
 * that no message can overtake an earlier one of its key.
 * @throws IdemkitError `option_invalid`; a client made for weaker settings was refused when its binding was made
 * (`kafka_producer_unsafe`).
 */
export function kafkaPublisher(client: KafkaClient, options: KafkaPublisherOptions = {}): Publisher {
  checkNames("kafkaPublisher", options, ["sendTimeoutMs", "maxBatchBytes", "unknownTopicMs", "headers"]);
  const sendTimeoutMs = checkInteger("sendTimeoutMs", options.sendTimeoutMs ?? 30_000, 100, 600_000);
  const maxBatchBytes = checkInteger("maxBatchBytes", options.maxBatchBytes ?? 500_000, 1000, 100_000_000);
  const unknownTopicMs = checkInteger("unknownTopicMs", options.unknownTopicMs ?? 10_000, 0, 3_600_000);
  const line = pipeline(client, sendTimeoutMs, systemRuntime.monotonicMs);
  const settings: SendSettings = {
    pipeline: line,
    protocolErrorOf: client.protocolErrorOf,
    headers: options.headers ?? "idemkit",
    maxBatchBytes,
  };
  const known = topicLookup(settings, unknownTopicMs);
  let waiting: Publishing[] = [];
  let working: Promise<void> | undefined;
  let closed = false;
  let calls = 0;
  /** By key: the last call that had been made when a message of the key did not get through. */
  const stopped = new Map<string, number>();

  async function work(): Promise<void> {
    while (waiting.length > 0) {
      const taken = waiting;
      waiting = [];
      const [given, aborted] = partitioned(taken, ({ signal }) => signal?.aborted !== true);
      for (const { sendings, signal } of aborted) failAll(sendings, signal?.reason);
      await publishAll(given.flatMap((publishing) => withoutStopped(publishing)));
      if (waiting.length === 0) stopped.clear();
    }
    working = undefined;
  }

  /** What was handed over before a message of its key turned out not to get through must not overtake it. */
  function withoutStopped({ sendings, number }: Publishing): readonly Sending[] {
    if (stopped.size === 0) return sendings;
    const [kept, late] = partitioned(sendings, ({ message }) => (stopped.get(keyOf(message)) ?? 0) < number);
    failAll(late, new IdemkitError("kafka_key_held"));
    return kept;
  }

  async function publishAll(sendings: readonly Sending[]): Promise<void> {
    try {
      const { counts, ready } = await known(sendings);
      await sendInOrder(ready, counts, settings);
    } catch (error) {
      // Settling twice is harmless: only the first counts.
      failAll(sendings, error);
    }
  }

  function publish(messages: readonly EventMessage[], signal?: AbortSignal): Promise<readonly Published[]> {
    if (closed) return Promise.reject(new IdemkitError("kafka_publisher_closed"));
    calls += 1;
    const results = messages.map((message) => sendingOf(message, () => stopped.set(keyOf(message), calls)));
    waiting.push({ sendings: results.map(({ sending }) => sending), signal, number: calls });
    // One turn later, so that the shards of a relay that wake together share a request.
    working ??= Promise.resolve().then(work);
    return Promise.all(results.map(({ result }) => result));
  }

  return {
    publish,
    [Symbol.asyncDispose]: async () => {
      closed = true;
      await working;
      await line.close();
    },
  };
}

interface Promised {
  readonly sending: Sending;
  readonly result: Promise<Published>;
}

function sendingOf(message: EventMessage, onStopped: () => void): Promised {
  const { promise: result, resolve } = deferred<Published>();
  const settle = (published: Published): void => {
    if (published.published !== "acknowledged") onStopped();
    resolve(published);
  };
  return { sending: { message, settle }, result };
}

function partitioned<T>(items: readonly T[], test: (item: T) => boolean): [T[], T[]] {
  return [items.filter((item) => test(item)), items.filter((item) => !test(item))];
}

/** Finds the partition counts; settles the messages of topics that can't be sent to. */
function topicLookup(
  { pipeline: line, protocolErrorOf }: SendSettings,
  unknownTopicMs: number,
): (
  sendings: readonly Sending[],
) => Promise<{ readonly counts: Map<string, number>; readonly ready: readonly Sending[] }> {
  const unknownSince = new Map<string, number>();

  function isRefusal(topic: string, error: unknown): boolean {
    const protocolError = protocolErrorOf(error);
    if (!isUnknownTopic(protocolError)) return refusalOf(protocolError) !== undefined;
    const since = unknownSince.get(topic) ?? systemRuntime.monotonicMs();
    unknownSince.set(topic, since);
    return systemRuntime.monotonicMs() - since >= unknownTopicMs;
  }

  return async (sendings) => {
    const counts = new Map<string, number>();
    for (const topic of new Set(sendings.map(({ message }) => message.topic))) {
      try {
        counts.set(topic, await line.partitionCount(topic));
        unknownSince.delete(topic);
      } catch (error) {
        const its = sendings.filter(({ message }) => message.topic === topic);
        if (isRefusal(topic, error)) refuseAll(its, error, new Set());
        else failAll(its, error);
      }
    }
    return { counts, ready: sendings.filter(({ message }) => counts.has(message.topic)) };
  };
}
