import { backoffMs } from "../internal/backoff.ts";
import type { BackoffSettings } from "../internal/backoff.ts";
import { withDeadline } from "../internal/deadline.ts";
import type { FetchLike, PreparedRequest, ResponseLike } from "./prepared-request.ts";
import { verdictOf } from "./verdict.ts";
import type { Verdict } from "./verdict.ts";

/** Bounds of one call, resolved. */
export interface SendSettings<R extends ResponseLike> {
  readonly fetch: FetchLike<R>;
  readonly tryTimeoutMs: number;
  readonly totalTimeoutMs: number;
  readonly backoff: BackoffSettings;
  readonly random: () => number;
}

/** What a call came to. */
export interface Sent<R> {
  readonly verdict: Verdict["verdict"];
  /** The last response, if any try got one. */
  readonly response?: R;
  /** Why the last try got none. */
  readonly error?: unknown;
  /** Whether a try before the last one may have taken effect unseen. */
  readonly doubted: boolean;
}

/**
 * Sends a prepared request, again and again while it may be repeated and time is left.
 * @throws the signal's reason once the caller aborts
 */
export async function send<R extends ResponseLike>(
  settings: SendSettings<R>,
  request: PreparedRequest,
  signal: AbortSignal | undefined,
  mayRepeat: boolean,
): Promise<Sent<R>> {
  const deadline = performance.now() + settings.totalTimeoutMs;
  for (let doubted = false, tries = 0; ; tries += 1, doubted = true) {
    const left = deadline - performance.now();
    const tried = await tryOnce(settings, request, signal, Math.min(settings.tryTimeoutMs, left));
    const sent: Sent<R> = { ...tried.sent, doubted };
    const pauseMs = tried.retryAfterMs + backoffMs(tries, settings.backoff, settings.random);
    // A pause that would outlast the call is not waited: the caller learns sooner.
    const inTime = performance.now() + pauseMs < deadline;
    if (sent.verdict !== "again" || !mayRepeat || !inTime) return sent;
    await pause(pauseMs, signal);
  }
}

interface Tried<R> {
  readonly sent: Omit<Sent<R>, "doubted">;
  readonly retryAfterMs: number;
}

async function tryOnce<R extends ResponseLike>(
  settings: SendSettings<R>,
  { url, method, headers, body, rest }: PreparedRequest,
  signal: AbortSignal | undefined,
  timeoutMs: number,
): Promise<Tried<R>> {
  signal?.throwIfAborted();
  try {
    const init = { ...rest, method, headers, ...(body === undefined ? {} : { body }) };
    const { response, text } = await withDeadline(signal, timeoutMs, async (bound) => {
      const answer = await settings.fetch(url, { ...init, signal: bound });
      // Read to its end here: an answer that breaks off is no answer, and must be asked for again under the same key.
      return { response: answer, text: await answer.clone().text() };
    });
    const verdict = verdictOf(response, text, Date.now());
    const retryAfterMs = verdict.verdict === "again" ? verdict.retryAfterMs : 0;
    return { sent: { verdict: verdict.verdict, response }, retryAfterMs };
  } catch (error) {
    signal?.throwIfAborted();
    return { sent: { verdict: "again", error }, retryAfterMs: 0 };
  }
}

async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", aborted);
      resolve();
    }, ms);
    function aborted(): void {
      clearTimeout(timer);
      reject(signal?.reason instanceof Error ? signal.reason : new Error("aborted"));
    }
    signal?.addEventListener("abort", aborted, { once: true });
  });
}
