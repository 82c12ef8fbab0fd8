import fc from "fast-check";
import type { Outcome } from "idemkit";
import { refuse, runOnce } from "idemkit";
import { afterAll, beforeAll, expect, test } from "vitest";

import { next as stateAfter, transitions } from "../../../dist/core/lifecycle.js";
import type { OperationEvent, OperationState } from "../../../dist/core/lifecycle.js";
import { charge, chargeOf, isolations, paymentsDatabase } from "../postgres/support/payments.ts";
import type { Database, Payments } from "../postgres/support/payments.ts";
import { gate } from "../postgres/support/steps.ts";

let payments: Payments;
beforeAll(async () => {
  payments = await paymentsDatabase();
});
afterAll(() => payments[Symbol.asyncDispose]());

type Ending = "keep" | "refuse" | "discard" | "crash";

/** What the model knows of one key. */
interface Model {
  readonly key: string;
  state: OperationState;
  /** How many commands have taken effect: an expired key may have had several. */
  kept: number;
  /** The command of the running or stored operation, and the process that runs it. */
  command: number;
  process: number;
  stored?: unknown;
  attempt?: { end(how: Ending): void; outcome: Promise<Outcome<unknown>> };
}

interface Step {
  readonly event: OperationEvent;
  readonly key: number;
  readonly process: number;
  readonly command: number;
}

const steps = fc.array(
  fc.record<Step>({
    event: fc.constantFrom(...new Set(transitions.map(({ event }) => event))),
    key: fc.integer({ min: 0, max: 1 }),
    process: fc.integer({ min: 0, max: 1 }),
    command: fc.integer({ min: 1, max: 2 }),
  }),
  { minLength: 4, maxLength: 24 },
);

/** One sequence that goes every way of the table, so that none is left to chance. */
const way: readonly OperationEvent[] = [
  ...(["claim", "repeat", "keep", "repeat", "expire"] as const),
  ...(["claim", "refuse", "repeat", "expire"] as const),
  ...(["claim", "discard", "claim", "crash"] as const),
];
const everyWay = way.map((event): Step => ({ event, key: 0, process: 0, command: 1 }));

let sequences = 0;

async function begin(model: Model, database: Database, options: object): Promise<void> {
  const inside = gate();
  let end = (_how: Ending): void => {};
  const ending = new Promise<Ending>((resolve) => {
    end = resolve;
  });
  const outcome = runOnce(
    database,
    chargeOf(model.key, { ...options, command: model.command }),
    async (once) => {
      const payment = await charge(once, model.command);
      const { rows } = await once.tx.query<{ pid: number }>("select pg_backend_pid() as pid");
      inside.open();
      const how = await ending;
      if (how === "refuse") throw refuse({ declined: model.command });
      if (how === "discard") throw new Error("discarded");
      // The server's own end of it: the wait is for the backend to be gone.
      if (how === "crash") {
        await payments.admin.query("select pg_terminate_backend($1, 5000)", [rows[0]?.pid]);
      }
      return payment;
    },
  );
  outcome.catch(() => undefined);
  model.attempt = { end, outcome };
  await inside.opened;
}

async function finish(model: Model, how: Ending): Promise<void> {
  const { attempt } = model;
  if (attempt === undefined) throw new Error("nothing runs");
  attempt.end(how);
  delete model.attempt;
  if (how === "discard") return expect(attempt.outcome).rejects.toThrow("discarded");
  if (how === "crash") {
    return expect(attempt.outcome).rejects.toMatchObject({ code: "idempotency_unavailable" });
  }
  const { outcome, ...stored } = await attempt.outcome;
  expect(outcome).toBe("executed");
  expect(stored).toMatchObject(
    how === "keep"
      ? { disposition: "keep", value: { key: model.key, amount: model.command } }
      : { disposition: "refuse", refusal: { declined: model.command } },
  );
  model.stored = stored;
  if (how === "keep") model.kept += 1;
}

async function repeat(model: Model, step: Step, database: Database, options: object): Promise<void> {
  const again = await runOnce(
    database,
    chargeOf(model.key, { ...options, command: step.command }),
    () => "ran again",
  );
  const other = step.command !== model.command;
  if (model.state !== "running") {
    expect(again).toEqual(
      other ? { outcome: "mismatch" } : { outcome: "replayed", ...(model.stored as object) },
    );
    return;
  }
  // Only the process that runs the command can see it.
  expect(again).toEqual({ outcome: other && step.process === model.process ? "mismatch" : "in-progress" });
}

async function apply(model: Model, step: Step, database: Database, options: object): Promise<void> {
  switch (step.event) {
    case "claim":
      model.command = step.command;
      model.process = step.process;
      return begin(model, database, options);
    case "repeat":
      return repeat(model, step, database, options);
    case "expire":
      await payments.admin.query("update idemkit.idempotency_record set expires_at = now() where key = $1", [
        model.key,
      ]);
      return;
    default:
      return finish(model, step.event);
  }
}

async function expectStored(model: Model): Promise<void> {
  const { rows } = await payments.admin.query<{ disposition: string }>(
    "select disposition from idemkit.idempotency_record where key = $1 and expires_at > now()",
    [model.key],
  );
  const wanted = { absent: [], running: [], kept: ["keep"], refused: ["refuse"] }[model.state];
  expect(rows.map(({ disposition }) => disposition)).toEqual(wanted);
  expect(await payments.payments(model.key)).toHaveLength(model.kept);
}

test("whatever happens in whatever order, from two processes, a real database follows the transition table", async () => {
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(
      steps,
      fc.constantFrom(undefined, ...isolations),
      fc.boolean(),
      async (given, isolation, pipeline) => {
        sequences += 1;
        const processes = [payments.process({ pipeline }), payments.process({ pipeline })] as const;
        const options = isolation === undefined ? {} : { isolation };
        const models = [0, 1].map((n): Model => ({
          key: `${sequences}-${n}`,
          state: "absent",
          kept: 0,
          command: 0,
          process: 0,
        }));
        for (const step of given) {
          const model = models[step.key];
          const database = processes[step.process];
          const to = model && stateAfter(model.state, step.event);
          if (model === undefined || database === undefined || to === undefined) continue;
          await apply(model, step, database, options);
          seen.add(`${model.state} ${step.event}`);
          model.state = to;
          await expectStored(model);
        }
        for (const model of models) if (model.attempt) await finish(model, "discard");
      },
    ),
    { numRuns: 40, examples: [[everyWay, undefined, false]] },
  );
  expect([...seen].toSorted()).toEqual(transitions.map(({ from, event }) => `${from} ${event}`).toSorted());
});
