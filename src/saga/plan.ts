/**
 * What a saga does next: a pure function of its definition's names, its state and its ledger. It draws the diagram in
 * `docs/saga.md` and is what the property test drives.
 */

/** Which way a step goes. */
export type Direction = "action" | "compensation";

/** A saga's state, as it is stored. */
export type SagaState = "running" | "compensating" | "uncertain" | "committed" | "compensated";

/** A row of the runner's ledger. */
export interface StepRow {
  readonly step: string;
  readonly direction: Direction;
  readonly derivedKey: string;
  readonly state: "intent" | "waiting" | "done" | "refused" | "absent" | "blocked";
  readonly result: Uint8Array | null;
  readonly ageMs: number;
}

/** The part of a step that decides the order. */
export interface PlannedStep {
  readonly name: string;
  readonly compensable: boolean;
  readonly pivot: boolean;
}

/** What comes next. */
export type Next =
  | { readonly next: "do"; readonly step: string; readonly direction: Direction }
  /** The action was intended and its result is not known: find out before it is compensated. */
  | { readonly next: "settle"; readonly step: string }
  | { readonly next: "wait"; readonly step: string; readonly direction: Direction; readonly ageMs: number }
  | { readonly next: "compensate"; readonly failure: Uint8Array | null }
  | { readonly next: "end"; readonly state: "committed" | "compensated" };

/** The next move of a saga that is `running` or `compensating`. */
export function nextOf(
  steps: readonly PlannedStep[],
  state: "running" | "compensating",
  ledger: readonly StepRow[],
): Next {
  const rows = new Map(ledger.map((row) => [`${row.step}:${row.direction}`, row]));
  return state === "running" ? forward(steps, rows) : backward(steps, rows);
}

/**
 * Whether the saga can only go forward: its pivot is done, or is asked for by a message that nothing takes back. An `open`
 * pivot may have happened and has to be settled before the saga may turn round.
 */
export function pivotOf(
  steps: readonly PlannedStep[],
  ledger: readonly StepRow[],
): { readonly forwardOnly: boolean; readonly open: string | undefined } {
  const pivot = steps.find((each) => each.pivot);
  const state = ledger.find((row) => row.step === pivot?.name && row.direction === "action")?.state;
  return {
    forwardOnly: state === "done" || (state === "waiting" && pivot?.compensable === false),
    open: state === "intent" ? pivot?.name : undefined,
  };
}

function forward(steps: readonly PlannedStep[], rows: ReadonlyMap<string, StepRow>): Next {
  for (const { name } of steps) {
    const row = rows.get(`${name}:action`);
    if (row?.state === "done") continue;
    if (row?.state === "refused") return { next: "compensate", failure: row.result };
    if (row?.state === "waiting") return { next: "wait", step: name, direction: "action", ageMs: row.ageMs };
    return { next: "do", step: name, direction: "action" };
  }
  return { next: "end", state: "committed" };
}

/** In reverse order. A step that waits for its reply is compensated too: its receiver puts the two in order. */
function backward(steps: readonly PlannedStep[], rows: ReadonlyMap<string, StepRow>): Next {
  for (const { name, compensable } of steps.toReversed()) {
    const action = rows.get(`${name}:action`)?.state;
    const compensation = rows.get(`${name}:compensation`);
    if (action === "intent") return { next: "settle", step: name };
    const happened = action === "done" || action === "waiting";
    if (!happened || !compensable || compensation?.state === "done") continue;
    if (compensation?.state === "waiting") {
      return { next: "wait", step: name, direction: "compensation", ageMs: compensation.ageMs };
    }
    return { next: "do", step: name, direction: "compensation" };
  }
  return { next: "end", state: "compensated" };
}
