import type { ServerResponse } from "node:http";

import { gateKey, hideLeft, isHttp1, shadows } from "./gate-shadows.ts";
import type { Gated, Members } from "./gate-shadows.ts";
import type { GateState } from "./gate-state.ts";

/** What a response says of itself while its gate is closed. */
const headersSent = accessor((state) => state.head !== undefined);
const ended = accessor((state) => state.ended);
/**
 * Not `finished` in HTTP/1, where it is a property that Node itself reads: a server that closes takes a connection whose
 * response is finished for an idle one, and would cut it before the answer is sent.
 */
const endedNames = ["writableEnded", "writableFinished"];

function accessor(of: (state: GateState) => boolean): PropertyDescriptor {
  return {
    configurable: true,
    get(this: Gated) {
      const closed = this[gateKey];
      return closed !== undefined && of(closed.state);
    },
  };
}

/**
 * Raises the gate over the members of a response, and over the wrappers that the layers below have put there. Members
 * and not the prototype, and one by one: to change a prototype, or to go over names, costs V8 ten times as much.
 */
export function raise(res: Gated, state: GateState): void {
  res[gateKey] = { state, below: membersOf(res), listeners: res.listenerCount("finish") };
  setMembers(res, shadows as unknown as Members);
  Object.defineProperty(res, "headersSent", headersSent);
  for (const name of endedNames) Object.defineProperty(res, name, ended);
  if (!isHttp1(res)) Object.defineProperty(res, "finished", ended);
  if (res.destroyed) hideLeft(res, state);
}

/** Takes the gate away: the response has the members of the layers below again, whatever the handler has put over it. */
export function lower(res: Gated, state: GateState): void {
  const closed = res[gateKey];
  if (closed === undefined) return;
  res[gateKey] = undefined;
  if (!isHttp1(res)) Reflect.deleteProperty(res, "finished");
  for (const name of endedNames) Reflect.deleteProperty(res, name);
  Reflect.deleteProperty(res, "headersSent");
  // Not deleted where they were inherited: that would make the response a dictionary for V8, and slow.
  setMembers(res, closed.below);
  if (state.left && isHttp1(res)) Object.assign(res, { destroyed: true, _closed: true });
}

function membersOf(res: Gated): Members {
  return {
    writeHead: res.writeHead,
    write: res.write,
    end: res.end,
    flushHeaders: res.flushHeaders,
    destroy: res.destroy,
    addTrailers: res.addTrailers,
    writeContinue: res.writeContinue,
    writeProcessing: res.writeProcessing,
    writeEarlyHints: res.writeEarlyHints,
    emit: res.emit,
  };
}

function setMembers(res: Gated, members: Members): void {
  res.writeHead = members.writeHead;
  res.write = members.write;
  res.end = members.end;
  res.flushHeaders = members.flushHeaders;
  res.destroy = members.destroy;
  res.addTrailers = members.addTrailers;
  res.writeContinue = members.writeContinue;
  res.writeProcessing = members.writeProcessing;
  res.writeEarlyHints = members.writeEarlyHints;
  res.emit = members.emit;
}

/** Swallows what somebody still writes to a response that was answered without them. */
export function abandon(res: Gated): void {
  const { write, end, destroy } = shadows;
  Object.assign(res, { write, end, destroy });
}

/** Swallows changes to headers that have been sent, where Node would throw into a callback that nobody guards. */
export function swallowHeaders(res: ServerResponse): void {
  const swallow = (): ServerResponse => res;
  Object.assign(res, { setHeader: swallow, appendHeader: swallow, removeHeader: swallow });
  Object.assign(res, { setHeaders: swallow, writeHead: swallow, flushHeaders: swallow });
}
