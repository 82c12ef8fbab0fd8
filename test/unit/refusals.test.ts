import {
  createInbox,
  deadLetters,
  defineSaga,
  discardDeadLetter,
  enqueue,
  enqueueAll,
  isIdemkitError,
  listUnfinished,
  localStep,
  messageStep,
  migrate,
  outboxStatus,
  parkedInboxKeys,
  parkedOutboxKeys,
  participate,
  releaseOutboxKey,
  replyToSaga,
  resolveEffect,
  resolveSagaStep,
  retainProcessedEvents,
  runOnce,
  sagaStatus,
  startMaintenance,
  startRelay,
  startSaga,
  startSagas,
  step,
  withEffects,
} from "idemkit";
import { idempotency as express, requireIdempotencyKey as expressKey } from "idemkit/express";
import { idempotency as fastify, requireIdempotencyKey as fastifyKey } from "idemkit/fastify";
import { idempotency as fetch, requireIdempotencyKey as fetchKey } from "idemkit/fetch";
import { idempotency as hono } from "idemkit/hono";
import { idempotency as node, requireIdempotencyKey as nodeKey } from "idemkit/node";
import { fromPg } from "idemkit/pg";
import { webhook } from "idemkit/webhook";
import pg from "pg";
import { describe, expect, test } from "vitest";

/** As JavaScript calls it, where no type stands in the way. */
type Anything = Readonly<Record<string, (...args: unknown[]) => unknown>>;

const plain = {
  createInbox,
  deadLetters,
  defineSaga,
  discardDeadLetter,
  enqueue,
  enqueueAll,
  listUnfinished,
  localStep,
  messageStep,
  migrate,
  outboxStatus,
  parkedInboxKeys,
  parkedOutboxKeys,
  participate,
  releaseOutboxKey,
  replyToSaga,
  resolveEffect,
  resolveSagaStep,
  retainProcessedEvents,
  runOnce,
  sagaStatus,
  startMaintenance,
  startRelay,
  startSaga,
  startSagas,
  step,
  withEffects,
} as unknown as Anything;
const pool = new pg.Pool({ connectionTimeoutMillis: 1000 });
const database = fromPg(pool);
const command = { scope: "shared", operation: "charge", key: "k", command: {} };
const handlers = { created: () => {} };
const noop = () => null;
const hook = { database, consumer: "acme", verify: { source: "acme", verify: noop } };
const saga = defineSaga("checkout", {
  steps: [localStep("reserve", { run: async () => 1 })],
});

const refused = async (call: () => unknown): Promise<unknown> => {
  try {
    await call();
  } catch (error) {
    return isIdemkitError(error) ? [error.code, error.details.at] : error;
  }
  return "nothing was refused";
};

describe("what has no database of idemkit's", () => {
  const calls: [name: string, ...rest: unknown[]][] = [
    ["runOnce", command, noop],
    ["withEffects", { operation: "charge" }, noop],
    ["startRelay", { publisher: { publish: noop } }],
    ["startMaintenance"],
    ["retainProcessedEvents"],
    ["startSagas", [saga]],
    ["startSaga", saga, { input: {} }],
    ["sagaStatus", "id"],
    ["resolveSagaStep", "id", { stepName: "a", as: "done" }],
    ["replyToSaga", {}, { sagaId: "id", stepName: "a", as: "done" }],
    ["participate", {}, { direction: "action" }, noop],
    ["resolveEffect", "id", { effect: "a", as: "absent" }],
    ["listUnfinished"],
    ["parkedOutboxKeys"],
    ["releaseOutboxKey", { topic: "t", key: "k" }],
    ["outboxStatus"],
    ["deadLetters"],
    ["parkedInboxKeys"],
    ["discardDeadLetter", { consumer: "c", eventId: "e" }],
    ["migrate"],
  ];
  test.each(calls)("%s", async (name, ...rest) => {
    for (const wrong of [undefined, null, "postgres://host/db", pool]) {
      expect(await refused(() => plain[name]?.(wrong, ...rest))).toEqual(["option_invalid", "database"]);
    }
  });

  test.each([
    ["createInbox", (wrong: unknown) => plain["createInbox"]?.({ database: wrong, consumer: "c" }, handlers)],
    ["webhook", (wrong: unknown) => webhook({ ...hook, database: wrong } as never, noop)],
    ...Object.entries({ express, fastify, fetch, hono, node }).map(
      ([name, idempotency]) =>
        [name, (wrong: unknown) => idempotency({ database: wrong, scope: "shared" } as never)] as const,
    ),
  ] as const)("%s", async (_name, call) => {
    for (const wrong of [undefined, null, "postgres://host/db", pool]) {
      expect(await refused(() => call(wrong))).toEqual([
        "option_invalid",
        expect.stringMatching(/database$/),
      ]);
    }
  });
});

test.each([undefined, null, "postgres://host/db", {}])("fromPg has no pool in %j", async (wrong) => {
  expect(await refused(() => fromPg(wrong as never))).toEqual(["option_invalid", "pool"]);
});

describe("a route without its handler", () => {
  const bound = { database, scope: "shared" } as const;
  const operation = { operation: "charge" };
  test.each([
    ["express", express, expressKey],
    ["fastify", fastify, fastifyKey],
    ["fetch", fetch, fetchKey],
    ["node", node, nodeKey],
  ] as const)("%s", async (_name, idempotency, requireKey) => {
    const idempotent = idempotency(bound) as unknown as {
      (options: object, handler?: unknown): unknown;
      withEffects(options: object, handler?: unknown): unknown;
    };
    const keyed = requireKey as unknown as (handler?: unknown) => unknown;
    for (const call of [
      () => idempotent(operation),
      () => idempotent.withEffects(operation, {}),
      () => keyed(),
    ]) {
      expect(await refused(call)).toEqual(["option_invalid", expect.stringMatching(/handler$/)]);
    }
  });
});

const inbox = createInbox({ database, consumer: "ledger" }, handlers);

test.each<[at: string, call: () => unknown]>([
  ["charge.whileRunning", () => plain["runOnce"]?.(database, { ...command, whileRunning: 500 }, noop)],
  ["handler", () => plain["runOnce"]?.(database, command)],
  ["runOnce", () => plain["runOnce"]?.(database)],
  ["handler", () => plain["withEffects"]?.(database, { operation: "charge" })],
  ["handlers", () => plain["createInbox"]?.({ database, consumer: "ledger" })],
  ["handlers.created", () => plain["createInbox"]?.({ database, consumer: "ledger" }, { created: 5 })],
  ["createInbox", () => plain["createInbox"]?.()],
  ["handler", () => (webhook as (options: unknown) => unknown)(hook)],
  ["parse", () => webhook({ ...hook, parse: "json" } as never, noop)],
  ["verify", () => webhook({ ...hook, verify: "secret" } as never, noop)],
  ["tx", () => plain["enqueueAll"]?.(undefined, [])],
  ["events", () => plain["enqueueAll"]?.({ query: noop }, { type: "created" })],
  ["event", () => plain["enqueueAll"]?.({ query: noop }, [undefined])],
  ["publisher", () => plain["startRelay"]?.(database, { publisher: {} })],
  ["definitions", () => plain["startSagas"]?.(database, saga)],
  ["definition", () => plain["startSaga"]?.(database)],
  ["startSaga", () => plain["startSaga"]?.(database, saga)],
  ["saga a", () => plain["defineSaga"]?.("a")],
  ["saga a.steps", () => plain["defineSaga"]?.("a", {})],
  ["saga a.steps", () => plain["defineSaga"]?.("a", { steps: [] })],
  ["saga a.steps", () => plain["defineSaga"]?.("a", { steps: [{ run: noop }] })],
  ["saga a.deadlineMs", () => plain["defineSaga"]?.("a", { steps: saga.steps, deadlineMs: "1s" })],
  ["step a.run", () => plain["localStep"]?.("a", {})],
  ["step a.compensate", () => plain["localStep"]?.("a", { run: noop, compensate: 5 })],
  ["step a.retry.maxTries", () => plain["localStep"]?.("a", { run: noop, retry: { maxTries: 0 } })],
  ["step a.retry.tries", () => plain["localStep"]?.("a", { run: noop, retry: { tries: 5 } })],
  ["step a.run", () => plain["step"]?.("a", { recover: noop })],
  ["step a.deadlineMs", () => plain["step"]?.("a", { run: noop, deadlineMs: 0 })],
  ["step a.command", () => plain["messageStep"]?.("a", {})],
  ["step a.timeoutMs", () => plain["messageStep"]?.("a", { command: noop, timeoutMs: -1 })],
  ["resolution", () => plain["resolveSagaStep"]?.(database, "id")],
  ["resolution.as", () => plain["resolveSagaStep"]?.(database, "id", { stepName: "a", as: "refused" })],
  ["resolution", () => plain["resolveEffect"]?.(database, "id")],
  ["resolution.as", () => plain["resolveEffect"]?.(database, "id", { effect: "a", as: "lost" })],
  ["reply", () => plain["replyToSaga"]?.(database, {})],
  ["reply.as", () => plain["replyToSaga"]?.(database, {}, { sagaId: "id", stepName: "a", as: "blocked" })],
  ["part", () => plain["participate"]?.(database, {})],
  ["direction", () => plain["participate"]?.(database, {}, { direction: "back" }, noop)],
  ["work", () => plain["participate"]?.(database, {}, { direction: "action" })],
])("%s is refused by its name", async (at, call) => {
  expect(await refused(call)).toEqual(["option_invalid", at]);
});

test("without the tx of a handler nothing is sent, and without an event nothing is handled", async () => {
  for (const wrong of [undefined, null, {}]) {
    expect(await refused(() => plain["enqueue"]?.(wrong, {}))).toEqual([
      "outbox_transaction_unknown",
      undefined,
    ]);
  }
  for (const wrong of [undefined, null, "event"]) {
    expect(await refused(() => inbox.process(wrong as never))).toEqual(["event_malformed", "message"]);
  }
  expect(await refused(() => inbox.process({} as never))).toEqual(["event_malformed", "eventId"]);
});
