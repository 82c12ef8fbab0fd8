import { IdemkitError } from "../errors.ts";
import type { Runtime } from "../internal/runtime.ts";

/** Watches over the handlers of one transaction: each has its time, and all end when the delivery is given up. */
export interface Watch {
  /** Aborts when a handler's time is over or the delivery is given up; either ends the whole transaction. */
  readonly signal: AbortSignal;
  /**
   * Waits for the work on the transaction, but no longer than its handlers may take.
   * @throws IdemkitError `handler_timed_out`, `inbox_aborted`; whatever the work threw.
   */
  during<T>(work: Promise<T>): Promise<T>;
  /**
   * A handler begins: only until `handled` is the wait of `during` cut short, since the inbox's own statements end by
   * themselves. Throws what `during` does, where the work was given up already.
   */
  begin(): void;
  handled(): void;
  /** Throws where the work was given up; from here on it can't be: it is about to commit. */
  close(): void;
  /** Whether the last handler began at least so long ago. */
  overslept(ms: number): boolean;
  /** Ends the watch. */
  end(): void;
}

/**
 * One timer, one controller and one race for all events of a batch: made for each event they would cost more than the
 * rest of the inbox.
 */
export function watch(timeoutMs: number, givenUp: AbortSignal | undefined, runtime: Runtime): Watch {
  const controller = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let startedMs = 0;
  let ended: IdemkitError | undefined;
  let handling = false;
  let closed = false;
  let tell: ((error: IdemkitError) => void) | undefined;

  function giveUp(error: IdemkitError): void {
    if (ended !== undefined || closed) return;
    ended = error;
    controller.abort(error);
    if (handling) tell?.(error);
  }
  function onTimer(): void {
    timer = undefined;
    if (!handling) return;
    const leftMs = startedMs + timeoutMs - runtime.monotonicMs();
    // Handlers that began later have their time still.
    if (leftMs > 0) timer = setTimeout(onTimer, leftMs);
    else giveUp(new IdemkitError("handler_timed_out"));
  }
  const onAbort = (): void => giveUp(aborted(givenUp));
  if (givenUp?.aborted === true) onAbort();
  givenUp?.addEventListener("abort", onAbort, { once: true });

  return {
    signal: controller.signal,
    during: (work) => {
      const givingUp = new Promise<never>((_resolve, reject) => (tell = reject));
      return Promise.race([work, givingUp]);
    },
    begin: () => {
      if (ended !== undefined) throw ended;
      startedMs = runtime.monotonicMs();
      timer ??= setTimeout(onTimer, timeoutMs);
      handling = true;
    },
    handled: () => {
      handling = false;
    },
    close: () => {
      if (ended !== undefined) throw ended;
      closed = true;
    },
    overslept: (ms) => startedMs > 0 && runtime.monotonicMs() - startedMs >= ms,
    end: () => {
      clearTimeout(timer);
      givenUp?.removeEventListener("abort", onAbort);
    },
  };
}

/** The error of a delivery that was given up. */
export function aborted(signal: AbortSignal | undefined): IdemkitError {
  return new IdemkitError("inbox_aborted", { cause: signal?.reason });
}
