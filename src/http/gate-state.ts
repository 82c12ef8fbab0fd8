import type { OutgoingHttpHeaders } from "node:http";

import { IdemkitError } from "../errors.ts";
import type { Capture } from "./answer.ts";

/** Events that tell the end of a response; kept back until it has really ended. */
export type EndEvent = "finish" | "close" | "error";

/** The head of a response, once it has "left". */
interface Head {
  readonly status: number;
  readonly statusMessage: string;
  readonly headers: OutgoingHttpHeaders;
}

/** What is known of a response behind its gate; plain data, since there is one for every request. */
export interface GateState {
  readonly maxBytes: number;
  head: Head | undefined;
  ended: boolean;
  /** Whether the capture can't be completed any more. */
  failed: boolean;
  chunks: Buffer[];
  size: number;
  /** The only chunk, where it is text: sent as such it leaves in one write with the head. */
  text: string | undefined;
  /** The capture of this reset; settles once. */
  answer: Promise<Capture>;
  resolve(capture: Capture): void;
  reject(error: unknown): void;
  /** End events that Node emitted meanwhile. */
  deferred: [event: EndEvent, args: unknown[]][] | undefined;
  /** Whether the client has left; the handler is not told, since its answer is stored all the same. */
  left: boolean;
}

/** An empty capture. */
export function gateState(maxBytes: number): GateState {
  return { maxBytes, ...fresh(), deferred: undefined, left: false };
}

/** Forgets what was captured. */
export function resetState(state: GateState): void {
  Object.assign(state, fresh());
}

function fresh(): Omit<GateState, "maxBytes" | "deferred" | "left"> {
  const { promise, resolve, reject } = settleable<Capture>();
  return {
    head: undefined,
    ended: false,
    failed: false,
    chunks: [],
    size: 0,
    text: undefined,
    answer: promise,
    resolve,
    reject,
  };
}

function settleable<T>(): { promise: Promise<T>; resolve(value: T): void; reject(error: unknown): void } {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((onValue, onError) => {
    resolve = onValue;
    reject = onError;
  });
  promise.catch(() => {}); // whoever waits for it sees the failure; nobody may be waiting
  return { promise, resolve, reject };
}

/** Adds a chunk as it was given to `write` or `end`. */
export function append(state: GateState, chunk: unknown, encoding: unknown): void {
  if (state.failed) return;
  const bytes = bytesOf(chunk, encoding);
  if (bytes === undefined) {
    fail(state, unsupported("a chunk that is neither text nor bytes"));
    return;
  }
  state.size += bytes.length;
  if (state.size > state.maxBytes) {
    fail(state, new IdemkitError("response_too_large"));
    return;
  }
  state.text = state.chunks.length === 0 && isUtf8Text(chunk, encoding) ? chunk : undefined;
  state.chunks.push(bytes);
}

/** Completes the capture. */
export function complete(state: GateState): void {
  const { head, chunks, text } = state;
  state.ended = true;
  if (state.failed || head === undefined) return;
  if ("trailer" in head.headers) {
    fail(state, unsupported("trailers"));
    return;
  }
  const [only] = chunks;
  const body = chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks);
  const { status, statusMessage, headers } = head;
  state.resolve({ status, statusMessage, headers, body, text });
}

/** Gives the capture up. */
export function fail(state: GateState, error: unknown): void {
  state.failed = true;
  state.chunks = [];
  state.reject(error);
}

function isUtf8Text(chunk: unknown, encoding: unknown): chunk is string {
  return typeof chunk === "string" && (typeof encoding !== "string" || /^utf-?8$/i.test(encoding));
}

/** A copy, as Node's own buffers may be used again by their owner once `write` has returned. */
function bytesOf(chunk: unknown, encoding: unknown): Buffer | undefined {
  if (typeof chunk === "string") {
    const known = typeof encoding === "string" && Buffer.isEncoding(encoding);
    return Buffer.from(chunk, known ? encoding : "utf8");
  }
  return chunk instanceof Uint8Array ? Buffer.from(chunk) : undefined;
}

/** A response feature that can't be stored and sent again. */
export function unsupported(what: string): IdemkitError {
  return new IdemkitError("response_unsupported", { detail: what });
}
