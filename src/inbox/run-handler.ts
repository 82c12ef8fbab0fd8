import { IdemkitError } from "../errors.ts";
import type { EventContext, EventHandler, ReceivedEvent } from "./handler.ts";

/** One run of a handler. */
export interface HandlerRun<Tx> {
  readonly event: ReceivedEvent;
  readonly tx: Tx;
  readonly attempt: number;
  readonly timeoutMs: number;
  /** Gives the delivery up. */
  readonly signal: AbortSignal | undefined;
}

/**
 * Runs a handler until it ends, its time is over, or the delivery is given up; the last two abort its signal.
 * @throws IdemkitError `handler_timed_out`, `inbox_aborted`; whatever the handler threw.
 */
export async function runHandler<Tx>(handler: EventHandler<Tx>, run: HandlerRun<Tx>): Promise<void> {
  const { event, tx, attempt, timeoutMs, signal } = run;
  if (signal?.aborted === true) throw aborted(signal);
  const controller = new AbortController();
  let onAbort: (() => void) | undefined;
  let timer: NodeJS.Timeout | undefined;
  const givenUp = new Promise<never>((_resolve, reject) => {
    const giveUp = (error: IdemkitError): void => {
      controller.abort(error);
      reject(error);
    };
    onAbort = (): void => giveUp(aborted(signal));
    timer = setTimeout(() => giveUp(new IdemkitError("handler_timed_out")), timeoutMs);
  });
  if (onAbort !== undefined) signal?.addEventListener("abort", onAbort, { once: true });
  try {
    await Promise.race([handle(handler, event, { tx, signal: controller.signal, attempt }), givenUp]);
  } finally {
    clearTimeout(timer);
    if (onAbort !== undefined) signal?.removeEventListener("abort", onAbort);
  }
}

/** An async function, so that a handler that throws at once rejects like one that throws later. */
async function handle<Tx>(
  handler: EventHandler<Tx>,
  event: ReceivedEvent,
  context: EventContext<Tx>,
): Promise<void> {
  await handler(event, context);
}

/** The error of a delivery that was given up. */
export function aborted(signal: AbortSignal | undefined): IdemkitError {
  return new IdemkitError("inbox_aborted", { cause: signal?.reason });
}
