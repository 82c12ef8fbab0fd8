import { setTimeout as delay } from "node:timers/promises";

/** What goes on behind a time-out ends when the producer is closed, as it is after every error. */
export async function within(timeoutMs: number, sending: Promise<unknown>): Promise<void> {
  const timer = new AbortController();
  const timedOut = delay(timeoutMs, undefined, { signal: timer.signal }).then(() => {
    throw new Error(`the send took longer than ${timeoutMs} ms`);
  });
  timedOut.catch(() => {});
  try {
    await Promise.race([sending, timedOut]);
  } finally {
    timer.abort();
    sending.catch(() => {});
  }
}
