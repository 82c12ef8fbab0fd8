import type { ServerResponse } from "node:http";

import type { Capture, OwnAnswer } from "./answer.ts";
import { bounded } from "./bounded.ts";
import type { Exchange } from "./exchange.ts";
import { closeGate, send } from "./gate.ts";
import type { Gate } from "./gate.ts";
import { grouped } from "./headers.ts";
import type { HandlerOnce, Route } from "./route.ts";

/** What a binding on Node's responses does in its framework's way. */
export interface GatedBinding<Tx> {
  readonly res: ServerResponse;
  /** Called when the gate is up and empty, before each run; `run` counts from 1. */
  prepare(run: number, gate: Gate): void;
  /** Called when the gate was emptied, for what the framework keeps beside the response. */
  reset?(): void;
  /** Whether the handler has sent by hand, where that can be before the response begins. */
  sent?(): boolean;
  /** Headers that the framework keeps beside the response, as they were before the handler. */
  baseHeaders?(): Capture["headers"];
  /** Whether the framework can still render an error. */
  canRender?(): boolean;
  /** Calls the handler. */
  invoke(once: HandlerOnce<Tx>): unknown;
  /** Sends what a handler returned; not called for `undefined`, for the response itself, or after sending by hand. */
  deliver(value: unknown): void;
  /** Hands an error to the framework, whose error handler sends into the gate. */
  handOver(error: unknown): void;
  /** Marks what the framework rendered from an error on its own. */
  finish?(capture: Capture): Capture;
}

/**
 * The exchange over a gate, for every framework on Node's own responses. The gate goes up with the first run, after
 * the claim; until then the response is free.
 */
export function gatedExchange<Tx>(route: Route<Tx>, binding: GatedBinding<Tx>): Exchange<Tx, void> {
  const { res } = binding;
  let gate: Gate | undefined;
  let runs = 0;
  let pending = false;
  let handedOver = false;

  async function handle(once: HandlerOnce<Tx>, up: Gate): Promise<Capture> {
    try {
      const value = await binding.invoke(once);
      const sent = value === undefined || value === res || up.begun() || binding.sent?.() === true;
      if (!sent) binding.deliver(value);
    } catch (error) {
      pending = false;
      throw error;
    }
    const capture = await up.answer();
    pending = false;
    return binding.finish?.(capture) ?? capture;
  }

  function reset(up: Gate): void {
    up.reset();
    binding.reset?.();
  }

  return {
    attempt: (once) => {
      if (gate === undefined) gate = closeGate(res, route.maxResponseBytes);
      else reset(gate);
      const up = gate;
      runs += 1;
      pending = true;
      binding.prepare(runs, up);
      return new Promise((resolve, reject) => {
        // A response that can't be kept ends the run at once; a complete one waits for the handler.
        up.answer().catch(reject);
        void handle(once, up).then(resolve, reject);
      });
    },
    pending: () => pending,
    canRunAgain: () => !handedOver,
    render: async (error) => {
      if (gate === undefined) throw error;
      if (!gate.untouched()) reset(gate);
      handedOver = true;
      binding.handOver(error);
      if (binding.canRender?.() === false) throw error;
      return bounded(gate.answer(), route.settings.handlerTimeoutMs);
    },
    engaged: () => gate !== undefined,
    sendCapture: (capture) => gate?.open(capture),
    sendAnswer: (answer) => {
      if (gate === undefined) return sendOwn(res, answer);
      gate.open(ownCapture(answer, { ...gate.base.headers, ...binding.baseHeaders?.() }), pending);
    },
  };
}

/** Sends an answer of idemkit's own on a response that nobody has begun, beside the headers that it has. */
export function sendOwn(res: ServerResponse, answer: OwnAnswer): void {
  send(res, ownCapture(answer, res.getHeaders()));
}

/** The same beside other headers. */
export function ownCapture({ status, headers, body }: OwnAnswer, base: Capture["headers"]): Capture {
  return {
    status,
    headers: { ...base, ...grouped(headers) },
    body: Buffer.from(body.buffer, body.byteOffset, body.length),
  };
}
