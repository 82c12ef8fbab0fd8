/**
 * Runs `work` with a signal that aborts at the deadline or with `signal`, and rejects then with the reason, whether or not the
 * work heeds it.
 *
 * The timer is its own: what `AbortSignal.any` makes of an `AbortSignal.timeout` is held weakly and may be collected before it
 * fires, and work that is never answered would last for ever.
 */
export async function withDeadline<T>(
  signal: AbortSignal | undefined,
  deadlineMs: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const abort = (): void => controller.abort(signal?.reason);
  const tooLate = (): void => controller.abort(new DOMException("the deadline passed", "TimeoutError"));
  const timer = setTimeout(tooLate, Math.max(1, Math.ceil(deadlineMs)));
  const aborted = new Promise<never>((_resolve, reject) => {
    controller.signal.addEventListener("abort", () => reject(controller.signal.reason as Error), {
      once: true,
    });
  });
  signal?.addEventListener("abort", abort, { once: true });
  try {
    if (signal?.aborted === true) abort();
    return await Promise.race([work(controller.signal), aborted]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  }
}
