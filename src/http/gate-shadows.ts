import type { OutgoingHttpHeader, OutgoingHttpHeaders, ServerResponse } from "node:http";

import { append, complete, fail, unsupported } from "./gate-state.ts";
import type { GateState } from "./gate-state.ts";

/** Where a response keeps the state of its gate, while it has one. */
export const gateKey: unique symbol = Symbol("idemkit.gate");

/** A response behind its gate. */
export type Gated = ServerResponse & { [gateKey]?: Closed | undefined };

/** The members of a response that a gate shadows. */
export type Members = Pick<
  ServerResponse,
  | "writeHead"
  | "write"
  | "end"
  | "flushHeaders"
  | "destroy"
  | "addTrailers"
  | "writeContinue"
  | "writeProcessing"
  | "writeEarlyHints"
  | "emit"
>;

/** A closed gate. */
export interface Closed {
  readonly state: GateState;
  /** The shadowed members: Node's own, or the wrappers of the layers below. */
  readonly below: Members;
  /** How many listeners there were before the gate; later ones belong to the handler and what it uses. */
  readonly listeners: number;
}

type Callback = (error?: Error | null) => void;

function stateOf(res: Gated): GateState | undefined {
  return res[gateKey]?.state;
}

function callbackIn(given: readonly unknown[]): Callback | undefined {
  return given.find((each): each is Callback => typeof each === "function");
}

function later(callback: Callback | undefined): void {
  if (callback !== undefined) process.nextTick(callback);
}

/** Shared by all responses; each works on the state behind `this`. None throws where Node's own would not. */
export const shadows: Readonly<Record<keyof Members, (this: Gated, ...given: never[]) => unknown>> = {
  writeHead(this: Gated, status: number, ...rest: unknown[]): Gated {
    const state = stateOf(this);
    if (state === undefined || state.head !== undefined || isInformational(status)) return this;
    checkStatus(status);
    const hasReason = typeof rest[0] === "string";
    setHeaders(this, hasReason ? rest[1] : (rest[0] ?? rest[1]));
    this.statusCode = status;
    const statusMessage = hasReason ? String(rest[0]) : (this.statusMessage ?? "");
    state.head = { status, statusMessage, headers: this.getHeaders() };
    return this;
  },
  write(this: Gated, chunk: unknown, ...rest: unknown[]): boolean {
    const state = stateOf(this);
    if (state !== undefined && !state.ended) {
      if (state.head === undefined) this.writeHead(this.statusCode);
      append(state, chunk, rest[0]);
    }
    later(callbackIn(rest));
    // What can't be kept holds its source up: one that never ends would keep the event loop for itself.
    return state !== undefined && !state.failed;
  },
  end(this: Gated, ...given: unknown[]): Gated {
    const state = stateOf(this);
    const callback = callbackIn(given);
    later(callback);
    if (state === undefined || state.ended) return this;
    if (state.head === undefined) this.writeHead(this.statusCode);
    const [chunk, encoding] = given;
    if (chunk !== undefined && chunk !== null && chunk !== callback) append(state, chunk, encoding);
    complete(state);
    if (this.listenerCount("finish") > (this[gateKey]?.listeners ?? 0)) {
      process.nextTick(tellFinished, this, state);
    }
    return this;
  },
  flushHeaders(this: Gated): void {
    const state = stateOf(this);
    if (state !== undefined && state.head === undefined) this.writeHead(this.statusCode);
  },
  /** An error of a stream that is piped here; the response is not gone, so that the error can still be rendered. */
  destroy(this: Gated, error?: Error): Gated {
    const state = stateOf(this);
    if (state !== undefined && !state.ended) fail(state, error ?? cutShort());
    return this;
  },
  addTrailers(this: Gated): void {
    const state = stateOf(this);
    if (state !== undefined) fail(state, unsupported("trailers"));
  },
  writeContinue: dropped,
  writeProcessing: dropped,
  writeEarlyHints: dropped,
  emit(this: Gated, event: string | symbol, ...args: unknown[]): boolean {
    const closed = this[gateKey];
    if (closed === undefined) return false;
    if (event !== "finish" && event !== "close" && event !== "error") {
      return closed.below.emit.call(this, event, ...args);
    }
    (closed.state.deferred ??= []).push([event, args]);
    if (event === "close") hideLeft(this, closed.state);
    return true;
  },
};

/** 1xx responses can't be replayed, and nobody may rely on one. */
function dropped(this: Gated, ...given: unknown[]): void {
  later(callbackIn(given));
}

function cutShort(): Error {
  return new Error("the response was destroyed before it was complete");
}

/** HTTP/1 keeps these as properties of a response, HTTP/2 has accessors. */
export function isHttp1(res: Gated): boolean {
  return Object.hasOwn(res, "_header");
}

/**
 * Tells `finish` to those who began to listen behind the gate: `await pipeline(source, res)` and its like wait for it
 * inside the handler, and the real one comes only after the handler. They are told once; who listened before is told
 * by the real event.
 */
function tellFinished(res: Gated, state: GateState): void {
  const closed = res[gateKey];
  if (closed?.state !== state || !state.ended) return;
  for (const listener of res.rawListeners("finish").slice(closed.listeners)) {
    res.removeListener("finish", listener as () => void);
    Reflect.apply(listener, res, []);
  }
}

/** A client that has left changes nothing for the handler: streams go on into the buffer. */
export function hideLeft(res: Gated, state: GateState): void {
  state.left = true;
  if (isHttp1(res)) Object.assign(res, { destroyed: false, _closed: false });
}

function setHeaders(res: Gated, headers: unknown): void {
  if (typeof headers !== "object" || headers === null) return;
  if (Array.isArray(headers)) {
    setPairs(res, headers.flat() as unknown[]);
    return;
  }
  for (const name of Object.keys(headers)) {
    const value = (headers as OutgoingHttpHeaders)[name];
    if (value !== undefined) res.setHeader(name, value);
  }
}

/** The flat form of `writeHead`: names and values in turn, where a name may come again. */
function setPairs(res: Gated, flat: readonly unknown[]): void {
  const seen = new Set<string>();
  for (let i = 0; i + 1 < flat.length; i += 2) {
    const name = String(flat[i]).toLowerCase();
    const value = flat[i + 1] as OutgoingHttpHeader;
    if (seen.has(name)) res.appendHeader(name, typeof value === "number" ? String(value) : value);
    else res.setHeader(name, value);
    seen.add(name);
  }
}

function isInformational(status: number): boolean {
  return status > 101 && status < 200;
}

/** Node's own check, since the real `writeHead` comes too late to tell the handler. */
function checkStatus(status: number): void {
  if (status >= 200 && status <= 999) return;
  const error = new RangeError(`Invalid status code: ${String(status)}`);
  throw Object.assign(error, { code: "ERR_HTTP_INVALID_STATUS_CODE" });
}
