import type { OutgoingHttpHeaders } from "node:http";

import type { OperationRecord } from "../core/ports.ts";
import type { HeaderList } from "./headers.ts";
import type { Problem } from "./problem.ts";

/** A complete response of a handler or of the framework's error handler, kept back until its transaction has ended. */
export interface Capture {
  readonly status: number;
  /** Set where the handler chose a reason phrase. */
  readonly statusMessage?: string | undefined;
  /** Lower-case names. */
  readonly headers: OutgoingHttpHeaders;
  readonly body: Buffer;
  /** The body as the text that it was given as, where it was. */
  readonly text?: string | undefined;
  /** Whether the framework rendered an error, although the handler did not throw: a failing response schema. */
  readonly rendered?: boolean;
}

/** An answer that idemkit itself sends: a stored record, or a problem. */
export interface OwnAnswer {
  readonly kind: "record" | "problem";
  readonly status: number;
  readonly headers: HeaderList;
  readonly body: Uint8Array;
}

/** Marks a replay, which caches must not keep (DESIGN section 6). */
const replayHeaders: HeaderList = [
  ["idempotent-replayed", "true"],
  ["cache-control", "no-store"],
];

/** What `runOnce` stored under a key has no status. */
const statusWithoutHttp = 200;

/** The answer a record holds; marked where it is a replay and not this request's own. */
export function answerOfRecord({ status, headers, body }: OperationRecord, replayed: boolean): OwnAnswer {
  return {
    kind: "record",
    status: status ?? statusWithoutHttp,
    headers: replayed ? [...headers, ...replayHeaders] : headers,
    body,
  };
}

/** A problem as bytes. */
export function answerOfProblem({ status, headers, body }: Problem): OwnAnswer {
  return {
    kind: "problem",
    status,
    headers: Object.entries(headers),
    body: Buffer.from(JSON.stringify(body)),
  };
}
