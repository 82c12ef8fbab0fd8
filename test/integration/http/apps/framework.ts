import type { Server } from "node:http";
import type { AddressInfo } from "node:net";

import type { PostgresDatabase } from "idemkit";
import type { OutcomeEvent } from "idemkit/http";
import type { PoolClient } from "pg";

/** What a handler of the suite does with its request and response, in its framework's own way. */
export interface Io {
  readonly body: unknown;
  json(status: number, value: unknown, headers?: Record<string, string | string[]>): unknown;
  empty(status: number, headers?: Record<string, string>): unknown;
  bytes(status: number, type: string, body: Buffer): unknown;
  redirect(status: number, location: string): unknown;
  stream(status: number, type: string, chunks: () => AsyncGenerator<string>): unknown;
  /** Returned without being sent: the framework turns it into a response. */
  value(value: object): unknown;
}

export interface SuiteOnce {
  readonly tx: PoolClient;
  readonly key: string | undefined;
  readonly operationId: string;
  readonly signal: AbortSignal;
  notFinal(): void;
}

export type Script = (io: Io, once: SuiteOnce) => unknown;

export interface Route {
  readonly script: Script;
  readonly options?: {
    readonly key?: "required" | "optional";
    readonly maxResponseBytes?: number;
    readonly storeHeaders?: readonly string[];
    readonly handlerTimeoutMs?: number;
    readonly lockTimeoutMs?: number;
  };
}

export interface Binding {
  readonly database: PostgresDatabase<PoolClient>;
  readonly mismatchStatus?: 409 | 422;
  readonly onOutcome?: (event: OutcomeEvent) => void;
}

export interface App {
  readonly url: string;
  close(): Promise<void>;
}

export interface Framework {
  readonly name: string;
  /** Whether what the framework renders from a thrown error is seen, and so stored where it is definitive. */
  readonly rendersThrownErrors: boolean;
  /** Whether an error at COMMIT is rendered into the answer as a thrown one is. */
  readonly rendersCommitErrors: boolean;
  /** Whether the handler can be called again after a serialization failure. */
  readonly runsAgain: boolean;
  /** Whether a handler gets Node's response. */
  readonly givesNodeResponse: boolean;
  /** Serves `POST /<name>` for each route; the scope is the header `x-principal`. */
  start(routes: Readonly<Record<string, Route>>, binding: Binding): Promise<App>;
}

/** An error that the apps' error handlers know. */
export class HttpError extends Error {
  readonly statusCode: number;
  constructor(statusCode: number, message: string) {
    super(message);
    this.statusCode = statusCode;
  }
}

/** What every app's error handler answers. */
export function rendered(error: unknown): { status: number; body: { error: string; code?: string } } {
  const status = statusIn(error) ?? statusOfCode(error);
  const message = error instanceof Error ? error.message : String(error);
  return { status, body: { error: message, ...(hasCode(error) ? { code: String(error.code) } : {}) } };
}

/** The status that an error of a parser or of a handler carries. */
function statusIn(error: unknown): number | undefined {
  if (typeof error === "object" && error !== null && "statusCode" in error) return Number(error.statusCode);
  return error instanceof SyntaxError ? 400 : undefined;
}

function hasCode(error: unknown): error is { code: unknown } {
  return typeof error === "object" && error !== null && "code" in error;
}

/** A unique violation is a conflict, here as in any service. */
function statusOfCode(error: unknown): number {
  return hasCode(error) && error.code === "23505" ? 409 : 500;
}

let requests = 0;
/** What is true of one exchange only, and must come anew with a replay. */
export function exchangeHeaders(): Record<string, string> {
  requests += 1;
  return { "x-request-id": `request-${requests}`, "access-control-allow-origin": "https://shop.example" };
}

export async function listening(server: Server): Promise<App> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
