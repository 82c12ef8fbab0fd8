import { setTimeout as delay } from "node:timers/promises";

/**
 * Waits for a condition to become true, and returns what it returned.
 *
 * @param condition - is called again and again; what it throws ends the wait
 * @throws an Error naming `what`, when the time is over
 */
export async function until<T>(
  condition: () => T | Promise<T>,
  options: { timeoutMs?: number; pollMs?: number; what?: string } = {},
): Promise<Exclude<T, false | null | undefined | 0 | "">> {
  const { timeoutMs = 10_000, pollMs = 10, what = condition.toString() } = options;
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const value = await condition();
    const isThere = Boolean(value);
    if (isThere) return value as Exclude<T, false | null | undefined | 0 | "">;
    if (performance.now() > deadline) throw new Error(`not within ${timeoutMs} ms: ${what}`);
    await delay(pollMs);
  }
}
