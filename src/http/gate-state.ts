import type { OutgoingHttpHeaders } from "node:http";

import { IdemkitError } from "../errors.ts";
import type { Capture } from "./answer.ts";

/** Events that tell the end of a response; kept back until it has really ended. */
export type EndEvent = "finish" | "close" | "error";

/** What is known of a response behind its gate. */
export interface GateState {
  begun: boolean;
  ended: boolean;
  /** Whether the gate's answer can't come any more. */
  failed: boolean;
  /** The capture of this reset; settles once. */
  answer: Promise<Capture>;
  /** End events that Node emitted meanwhile. */
  readonly deferred: [event: EndEvent, args: unknown[]][];
  /** Whether the client has left; the handler is not told, since its answer is stored all the same. */
  left: boolean;
  begin(status: number, statusMessage: string, headers: OutgoingHttpHeaders): void;
  append(chunk: unknown, encoding: unknown): void;
  end(): void;
  fail(error: unknown): void;
  reset(): void;
}

/** An empty capture. */
export function gateState(maxBytes: number): GateState {
  let head: Pick<Capture, "status" | "statusMessage" | "headers"> | undefined;
  let chunks: Buffer[] = [];
  let size = 0;
  let resolve: (capture: Capture) => void;
  let reject: (error: unknown) => void;

  const state: GateState = {
    begun: false,
    ended: false,
    failed: false,
    answer: fresh(),
    deferred: [],
    left: false,
    begin: (status, statusMessage, headers) => {
      state.begun = true;
      head = { status, statusMessage, headers };
    },
    append: (chunk, encoding) => {
      if (state.failed) return;
      const bytes = bytesOf(chunk, encoding);
      if (bytes === undefined) return state.fail(unsupported("a chunk that is neither text nor bytes"));
      size += bytes.length;
      if (size > maxBytes) return state.fail(new IdemkitError("response_too_large"));
      chunks.push(bytes);
    },
    end: () => {
      state.ended = true;
      if (state.failed || head === undefined) return;
      if (head.headers["trailer"] !== undefined) return state.fail(unsupported("trailers"));
      const [only] = chunks;
      resolve({ ...head, body: chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks) });
    },
    fail: (error) => {
      state.failed = true;
      chunks = [];
      reject(error);
    },
    reset: () => {
      Object.assign(state, { begun: false, ended: false, failed: false, answer: fresh() });
      head = undefined;
      chunks = [];
      size = 0;
    },
  };
  return state;

  function fresh(): Promise<Capture> {
    const answer = new Promise<Capture>((onAnswer, onFailure) => {
      resolve = onAnswer;
      reject = onFailure;
    });
    answer.catch(() => {}); // whoever waits for it sees the failure; nobody may be waiting
    return answer;
  }
}

/** A copy, as Node's own buffers may be used again by their owner once `write` has returned. */
function bytesOf(chunk: unknown, encoding: unknown): Buffer | undefined {
  if (typeof chunk === "string") {
    return Buffer.from(chunk, Buffer.isEncoding(String(encoding)) ? (encoding as BufferEncoding) : "utf8");
  }
  return chunk instanceof Uint8Array ? Buffer.from(chunk) : undefined;
}

/** A response feature that can't be stored and sent again. */
export function unsupported(what: string): IdemkitError {
  return new IdemkitError("response_unsupported", { detail: what });
}
