import { setTimeout as delay } from "node:timers/promises";
import { ask } from "./client.ts";
import type { Answer, Call } from "./client.ts";

/** How one command went, from the first try to its final answer. */
export interface Persisted {
  readonly final: Answer;
  /** The statuses of the tries before it; 0 where no answer came. */
  readonly tries: readonly number[];
}

export interface PersistOptions {
  readonly timeoutMs?: number;
  /** Shortens the waits that `Retry-After` asks for, where a test has no time. @defaultValue 1 */
  readonly patience?: number;
  /** Told of every try that was not the last. */
  readonly onTry?: () => void;
}

/**
 * Sends a command as a good client does: with one key, again after a lost answer, after a 503 and after a 409 that says
 * when to come back, until there is a final answer.
 */
export const persist = async (url: string, call: Call, options: PersistOptions = {}): Promise<Persisted> => {
  const { timeoutMs = 60_000, patience = 1, onTry } = options;
  const deadline = performance.now() + timeoutMs;
  const tries: number[] = [];
  for (;;) {
    const answer = await ask(url, call).catch(() => undefined);
    if (answer !== undefined && !answer.headers.has("retry-after")) {
      return { final: answer, tries };
    }
    tries.push(answer?.status ?? 0);
    onTry?.();
    if (performance.now() > deadline) {
      throw new Error(`no final answer within ${timeoutMs} ms, but ${tries.join(", ")}`);
    }
    // Not a wait for the service: it is what Retry-After asks of a client, with the jitter that spreads them.
    await delay((answer === undefined ? 100 : 1000) * patience * (0.5 + Math.random()));
  }
};
