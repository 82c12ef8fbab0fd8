import type { OutgoingHttpHeaders, ServerResponse } from "node:http";

import type { Capture } from "./answer.ts";
import { abandon, lower, raise, swallowHeaders } from "./gate-members.ts";
import type { Gated } from "./gate-shadows.ts";
import { fail, gateState, resetState } from "./gate-state.ts";
import type { GateState } from "./gate-state.ts";
import { hasNoContent } from "./status.ts";

/**
 * The gate over a response of Node (BINDINGS section 1): while it is closed everything that a handler or its framework
 * sends is kept in memory, and nothing reaches the layers below or the client. It goes up above whatever wraps the
 * response already (compression, sessions) and sends through those when it opens.
 */
export interface Gate {
  /** Whether a status line has been "sent". */
  begun(): boolean;
  /** Whether the capture is still as it was after the last reset. */
  untouched(): boolean;
  /** Status and headers as they were before the handler. */
  readonly base: Base;
  /** The complete response, from this reset on; rejects where it can't be kept (too large, trailers, destroyed). */
  answer(): Promise<Capture>;
  /** Gives the capture up. */
  fail(error: unknown): void;
  /** Forgets what was sent, for another run or for an error that is rendered instead. */
  reset(): void;
  /**
   * Takes the gate away and sends this answer through the layers below. Events that were kept back follow.
   * @param abandoned - whether somebody may still write to the response, who must not disturb the answer
   */
  open(answer: Capture, abandoned?: boolean): void;
}

/** A response before the handler. */
export interface Base {
  readonly status: number;
  readonly statusMessage: string;
  readonly headers: OutgoingHttpHeaders;
}

/** Raises the gate over a response. */
export function closeGate(given: ServerResponse, maxBytes: number): Gate {
  const res: Gated = given;
  const base: Base = {
    status: res.statusCode,
    statusMessage: res.statusMessage ?? "",
    headers: res.getHeaders(),
  };
  const state = gateState(maxBytes);
  raise(res, state);
  return {
    begun: () => state.head !== undefined,
    untouched: () => state.head === undefined && !state.failed,
    base,
    answer: () => state.answer,
    fail: (error) => fail(state, error),
    reset: () => {
      resetState(state);
      setHead(res, base.status, base.statusMessage, base.headers);
    },
    open: (answer, abandoned = false) => open(res, state, answer, abandoned),
  };
}

function open(res: Gated, state: GateState, answer: Capture, abandoned: boolean): void {
  lower(res, state);
  send(res, answer);
  if (abandoned) abandon(res);
  for (const [event, args] of state.deferred ?? []) {
    // Without a listener an `error` would end the process.
    if (event !== "error" || res.listenerCount("error") > 0) res.emit(event, ...args);
  }
  if (abandoned) {
    res.once("finish", () => swallowHeaders(res));
    res.once("close", () => swallowHeaders(res));
  }
}

/** Sends an answer on a response that nobody has begun. */
export function send(res: ServerResponse, { status, statusMessage, headers, body, text }: Capture): void {
  try {
    setHead(res, status, statusMessage ?? "", headers);
    dropTransferEncoding(res);
    if (hasNoContent(status)) {
      if (res.hasHeader("content-length")) res.removeHeader("content-length");
      res.end();
    } else {
      res.setHeader("content-length", body.length);
      res.end(text ?? body);
    }
  } catch (error) {
    // A layer below could not send it. The outcome is decided, so the client gets a broken connection and asks again.
    res.destroy(error instanceof Error ? error : new Error(String(error)));
  }
}

function setHead(res: ServerResponse, status: number, message: string, headers: OutgoingHttpHeaders): void {
  res.statusCode = status;
  // HTTP/2 has no reason phrase, and Node warns about setting one.
  if (message !== (res.statusMessage ?? "")) res.statusMessage = message;
  const now = res.getHeaders();
  for (const name in now) if (headers[name] === undefined) res.removeHeader(name);
  for (const name of Object.keys(headers)) {
    const value = headers[name];
    if (value !== undefined && now[name] !== value) res.setHeader(name, value);
  }
}

/** A handler's choice of framing is void; Node would remember its removal, and not frame what a layer below compresses. */
function dropTransferEncoding(res: ServerResponse): void {
  if (!res.hasHeader("transfer-encoding")) return;
  res.removeHeader("transfer-encoding");
  if ("_removedTE" in res) res._removedTE = false;
}
