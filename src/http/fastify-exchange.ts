import type { FastifyReply, FastifyRequest } from "fastify";

import type { Capture, OwnAnswer } from "./answer.ts";
import { codingsOf, decoded } from "./decode.ts";
import type { Exchange } from "./exchange.ts";
import { closeGate } from "./gate.ts";
import type { Gate } from "./gate.ts";
import { gatedExchange, ownCapture } from "./gated-exchange.ts";
import { grouped } from "./headers.ts";
import { copyOfInput } from "./input.ts";
import type { HandlerOnce, Route } from "./route.ts";

/** One request of Fastify to a protected route. */
export interface FastifyServed<Tx> {
  readonly route: Route<Tx>;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  invoke(once: HandlerOnce<Tx>): unknown;
  /** Rejects the promise that Fastify waits for, so that its own error handlers render the error. */
  reject(error: unknown): void;
}

/**
 * The exchange of Fastify: the gate, and beside it what Fastify keeps in the reply. Answers of idemkit's own go through
 * `reply.send` as well, so that hooks (compression, CORS, logging) see them.
 */
export function fastifyExchange<Tx>(served: FastifyServed<Tx>): Exchange<Tx, unknown> {
  const { route, request, reply, invoke, reject } = served;
  const shadows = replyShadows(reply);
  let base: Capture["headers"] = {};
  let spare: unknown;

  const exchange = gatedExchange<Tx>(route, {
    res: reply.raw,
    invoke,
    deliver: (value) => void reply.send(value),
    prepare: (run, gate) => {
      shadows.raise(gate);
      if (run > 1) {
        request.body = copyOfInput(spare);
        return;
      }
      base = headersOf(reply);
      spare = copyOfInput(request.body);
    },
    reset: () => {
      for (const name of Object.keys(reply.getHeaders())) reply.removeHeader(name);
      reply.headers(base);
    },
    sent: () => shadows.sends > 0 || reply.sent,
    baseHeaders: () => base,
    handOver: (error) => {
      shadows.passOn();
      reject(error);
    },
    canRender: () => !reply.sent, // it says so of a hijacked reply, too
    finish: (capture) => (shadows.sends > 1 ? { ...capture, rendered: true } : capture),
  });
  return {
    ...exchange,
    sendCapture: (capture) => {
      shadows.lower();
      return exchange.sendCapture(capture);
    },
    sendAnswer: (answer) => {
      shadows.lower();
      if (exchange.engaged()) return exchange.sendAnswer(answer);
      if (answer.kind === "record") return replay(reply, answer, route.stored);
      return reply.code(answer.status).headers(grouped(answer.headers)).send(answer.body);
    },
  };
}

/** Fastify's type allows numbers where Node's does not; Node writes them all the same. */
function headersOf(reply: FastifyReply): Capture["headers"] {
  return reply.getHeaders() as Capture["headers"];
}

/** Settles with the answer, however that ends. */
async function over(answer: Promise<unknown> | undefined): Promise<void> {
  await answer?.catch(() => {});
}

interface ReplyShadows {
  /** How often something was sent in this run: more than once is Fastify's error handler. */
  readonly sends: number;
  raise(gate: Gate): void;
  /** From here on what is sent comes from Fastify's error handlers. */
  passOn(): void;
  lower(): void;
}

/**
 * Shadows two members of a reply while the gate is closed. `then`: `return reply` waits for the end of the response,
 * which comes only after the handler. `send`: an error that is sent is a throw.
 */
function replyShadows(reply: FastifyReply): ReplyShadows {
  const { send, then } = reply;
  let closed: Gate | undefined;
  let passing = false;
  const shadows = {
    sends: 0,
    raise: (gate: Gate) => {
      closed = gate;
      shadows.sends = 0;
      setMembers(gatedSend, gatedThen);
    },
    passOn: () => {
      passing = true;
    },
    lower: () => {
      if (closed === undefined) return;
      // Deleted members would make it a dictionary for V8, and slow.
      setMembers(send, then);
    },
  };

  function setMembers(newSend: FastifyReply["send"], newThen: FastifyReply["then"]): void {
    reply.send = newSend;
    Reflect.set(reply, "then", newThen);
  }

  function gatedSend(this: FastifyReply, payload?: unknown): FastifyReply {
    if (!passing) shadows.sends += 1;
    const thrown = !passing && shadows.sends === 1 && payload instanceof Error;
    if (!thrown) return send.call(reply, payload);
    closed?.fail(payload);
    return reply;
  }

  function gatedThen(fulfilled: () => void): void {
    void over(closed?.answer()).then(fulfilled);
  }

  return shadows;
}

/**
 * Sends a record through Fastify's hooks, and then sees to it that status, stored headers and bytes are the record's,
 * whatever a hook made of them: only their headers for this one exchange (CORS, cookies) and their coding remain.
 */
async function replay(reply: FastifyReply, answer: OwnAnswer, stored: ReadonlySet<string>): Promise<void> {
  const gate = closeGate(reply.raw, Number.MAX_SAFE_INTEGER);
  const plain = (): Capture => ownCapture(answer, { ...gate.base.headers, ...headersOf(reply) });
  try {
    reply.code(answer.status).headers(grouped(answer.headers));
    void (answer.body.length === 0 ? reply.send() : reply.send(Buffer.from(answer.body)));
    gate.open(await recordWins(answer, await gate.answer(), stored));
  } catch {
    gate.open(plain());
  }
}

async function recordWins(answer: OwnAnswer, sent: Capture, stored: ReadonlySet<string>): Promise<Capture> {
  const own = ownCapture(answer, {});
  const codings = codingsOf(sent.headers);
  const sameBytes = codings.length > 0 && (await decodesTo(sent.body, codings, own.body));
  const ofExchange = (name: string): boolean =>
    !stored.has(name) && (sameBytes || name !== "content-encoding");
  const headers = Object.fromEntries(Object.entries(sent.headers).filter(([name]) => ofExchange(name)));
  return {
    status: own.status,
    headers: { ...headers, ...own.headers },
    body: sameBytes ? sent.body : own.body,
  };
}

async function decodesTo(body: Buffer, codings: readonly string[], expected: Buffer): Promise<boolean> {
  try {
    return (await decoded(body, codings, Math.max(1, expected.length))).equals(expected);
  } catch {
    return false;
  }
}
