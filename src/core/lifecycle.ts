/**
 * The states of one operation and every way between them. The table draws `docs/lifecycle.md` and drives the property
 * test that compares it with a real database.
 */

/** `absent` also stands for a record that has expired: a claim takes it over. */
export type OperationState = "absent" | "running" | "kept" | "refused";

/** What can happen to an operation. */
export type OperationEvent = "claim" | "keep" | "refuse" | "discard" | "crash" | "repeat" | "expire";

/** One way from a state to a state. */
export interface Transition {
  readonly from: OperationState;
  readonly event: OperationEvent;
  readonly to: OperationState;
  /** What the caller is told, and why. */
  readonly because: string;
}

/** All ways; an event that is not listed for a state cannot happen in it. */
export const transitions: readonly Transition[] = [
  {
    from: "absent",
    event: "claim",
    to: "running",
    because: "the first caller locks the key and opens the transaction",
  },
  {
    from: "running",
    event: "repeat",
    to: "running",
    because: "in-progress, or mismatch where the running command is seen",
  },
  { from: "running", event: "keep", to: "kept", because: "executed: writes and answer commit together" },
  {
    from: "running",
    event: "refuse",
    to: "refused",
    because: "executed: writes are rolled back, the answer is stored",
  },
  { from: "running", event: "discard", to: "absent", because: "executed, not final: nothing is stored" },
  { from: "running", event: "crash", to: "absent", because: "the server rolls back and frees the key" },
  { from: "kept", event: "repeat", to: "kept", because: "replayed, or mismatch for another command" },
  { from: "refused", event: "repeat", to: "refused", because: "replayed, or mismatch for another command" },
  { from: "kept", event: "expire", to: "absent", because: "retention is over: the key is new again" },
  { from: "refused", event: "expire", to: "absent", because: "retention is over: the key is new again" },
];

/** The state after `event`, or `undefined` where the event cannot happen. */
export function next(from: OperationState, event: OperationEvent): OperationState | undefined {
  return transitions.find((way) => way.from === from && way.event === event)?.to;
}
