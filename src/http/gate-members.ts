import type { OutgoingHttpHeader, OutgoingHttpHeaders, ServerResponse } from "node:http";

import { unsupported } from "./gate-state.ts";
import type { GateState } from "./gate-state.ts";

const gateKey: unique symbol = Symbol("idemkit.gate");

/** A response behind its gate. */
export type Gated = ServerResponse & { [gateKey]?: Closed | undefined };

interface Closed {
  readonly state: GateState;
  /** Members that the response has of its own: the wrappers of the layers below. */
  readonly own: Map<string, PropertyDescriptor>;
  readonly emit: ServerResponse["emit"];
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
const shadows = {
  writeHead(this: Gated, status: number, ...rest: unknown[]): Gated {
    const state = stateOf(this);
    if (state === undefined || state.begun || isInformational(status)) return this;
    checkStatus(status);
    const [reason, headers] =
      typeof rest[0] === "string" ? [rest[0], rest[1]] : [undefined, rest[0] ?? rest[1]];
    setHeaders(this, headers);
    this.statusCode = status;
    state.begin(status, reason ?? this.statusMessage ?? "", { ...this.getHeaders() });
    return this;
  },
  write(this: Gated, chunk: unknown, ...rest: unknown[]): boolean {
    const state = stateOf(this);
    if (state !== undefined && !state.ended) {
      if (!state.begun) this.writeHead(this.statusCode);
      state.append(chunk, rest[0]);
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
    if (!state.begun) this.writeHead(this.statusCode);
    const [chunk, encoding] = given;
    if (chunk !== undefined && chunk !== null && chunk !== callback) state.append(chunk, encoding);
    setFinished(this, true);
    state.end();
    process.nextTick(tellFinished, this, state);
    return this;
  },
  flushHeaders(this: Gated): void {
    if (stateOf(this)?.begun === false) this.writeHead(this.statusCode);
  },
  /** An error of a stream that is piped here; the response is not gone, so that the error can still be rendered. */
  destroy(this: Gated, error?: Error): Gated {
    const state = stateOf(this);
    if (state?.ended === false)
      state.fail(error ?? new Error("the response was destroyed before it was complete"));
    return this;
  },
  addTrailers(this: Gated): void {
    stateOf(this)?.fail(unsupported("trailers"));
  },
  writeContinue: dropped,
  writeProcessing: dropped,
  writeEarlyHints: dropped,
  writeInformation: dropped,
  emit(this: Gated, event: string | symbol, ...args: unknown[]): boolean {
    const closed = this[gateKey];
    if (closed === undefined) return false;
    if (event !== "finish" && event !== "close" && event !== "error") {
      return Reflect.apply(closed.emit, this, [event, ...args]) as boolean;
    }
    closed.state.deferred.push([event, args]);
    if (event === "close") hideLeft(this, closed.state);
    return true;
  },
};

/** 1xx responses can't be replayed, and nobody may rely on one. */
function dropped(this: Gated, ...given: unknown[]): void {
  later(callbackIn(given));
}

const names = Object.keys(shadows) as (keyof typeof shadows)[];
const saved = [...names, "headersSent", "writableEnded", "finished", "writableFinished"];

const headersSent: PropertyDescriptor = {
  configurable: true,
  get(this: Gated) {
    return stateOf(this)?.begun ?? false;
  },
};
const ended: PropertyDescriptor = {
  configurable: true,
  get(this: Gated) {
    return stateOf(this)?.ended ?? false;
  },
};

/** Raises the gate: shadows the members of a response. */
export function shadow(res: Gated, state: GateState): void {
  const own = new Map<string, PropertyDescriptor>();
  for (const name of saved) {
    const descriptor = Object.getOwnPropertyDescriptor(res, name);
    if (descriptor !== undefined) own.set(name, descriptor);
  }
  res[gateKey] = { state, own, emit: res.emit, listeners: res.listenerCount("finish") };
  Object.assign(res, shadows);
  Object.defineProperty(res, "headersSent", headersSent);
  if (!isHttp1(res)) for (const name of endedNames) Object.defineProperty(res, name, ended);
  if (res.destroyed) hideLeft(res, state);
}

/** Takes the gate away: the response has the members of the layers below again. */
export function unshadow(res: Gated, state: GateState): void {
  const own = res[gateKey]?.own;
  for (const name of saved) {
    const descriptor = own?.get(name);
    if (descriptor === undefined) Reflect.deleteProperty(res, name);
    else Object.defineProperty(res, name, descriptor);
  }
  res[gateKey] = undefined;
  if (state.left) showLeft(res);
}

/** In HTTP/1 `writableEnded` and the others read the property `finished`; HTTP/2 has accessors of its own. */
export function setFinished(res: Gated, finished: boolean): void {
  if (isHttp1(res)) Object.assign(res, { finished });
}

/** Swallows what somebody still writes to a response that was answered without them. */
export function abandon(res: Gated): void {
  Object.assign(res, { write: shadows.write, end: shadows.end, destroy: shadows.destroy });
}

const endedNames = ["writableEnded", "finished", "writableFinished"];

function isHttp1(res: Gated): boolean {
  return "_header" in res && Object.hasOwn(res, "_header");
}

/** Swallows changes to headers that have been sent, where Node would throw into a callback that nobody guards. */
export function swallowHeaders(res: ServerResponse): void {
  const swallow = (): ServerResponse => res;
  Object.assign(res, {
    setHeader: swallow,
    appendHeader: swallow,
    removeHeader: swallow,
    setHeaders: swallow,
  });
  Object.assign(res, { writeHead: swallow, flushHeaders: swallow });
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
function hideLeft(res: Gated, state: GateState): void {
  state.left = true;
  if (isHttp1(res)) Object.assign(res, { destroyed: false, _closed: false });
}

function showLeft(res: Gated): void {
  if (isHttp1(res)) Object.assign(res, { destroyed: true, _closed: true });
}

function setHeaders(res: Gated, headers: unknown): void {
  if (typeof headers !== "object" || headers === null) return;
  if (Array.isArray(headers)) return setPairs(res, headers.flat(1) as unknown[]);
  for (const [name, value] of Object.entries(headers as OutgoingHttpHeaders)) {
    if (value !== undefined) res.setHeader(name, value);
  }
}

/** The flat form of `writeHead`: names and values in turn, where a name may come again. */
function setPairs(res: Gated, flat: readonly unknown[]): void {
  const seen = new Set<string>();
  for (let i = 0; i + 1 < flat.length; i += 2) {
    const name = String(flat[i]);
    const value = flat[i + 1] as OutgoingHttpHeader;
    if (seen.has(name.toLowerCase()))
      res.appendHeader(name, typeof value === "number" ? String(value) : value);
    else res.setHeader(name, value);
    seen.add(name.toLowerCase());
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
