import type { Command } from "../core/fingerprint.ts";
import type { Capture, OwnAnswer } from "./answer.ts";
import type { HandlerOnce } from "./route.ts";

/** The facts of a request that decide what it is; read before any I/O but for the body. */
export interface Incoming {
  readonly method: string;
  /** Path and query as the client sent them. */
  readonly target: string;
  /** @throws IdemkitError `idempotency_key_malformed`. */
  key(): string | undefined;
  scope(): string;
  /** @throws IdemkitError `command_*`. */
  command(): Command | Promise<Command>;
}

/**
 * The port between the engine and a framework: one request and its response. `Sent` is what a binding returns to its
 * framework when an answer is on its way.
 */
export interface Exchange<Tx, Sent> {
  /** Runs the handler on a fresh capture and fresh input; resolves when its response is complete. */
  attempt(once: HandlerOnce<Tx>): Promise<Capture>;
  /** Whether the last attempt has not come to its end: it may still write. */
  pending(): boolean;
  canRunAgain(): boolean;
  /**
   * Has the framework render an error, after the roll-back.
   * @throws the error itself, where the framework renders it only outside (`rendersThrownErrors` is false)
   */
  render(error: unknown): Promise<Capture>;
  /** Whether an error can't be handed to the framework any more, so that the engine must answer it. */
  engaged(): boolean;
  sendCapture(capture: Capture): Sent | Promise<Sent>;
  sendAnswer(answer: OwnAnswer): Sent | Promise<Sent>;
}
