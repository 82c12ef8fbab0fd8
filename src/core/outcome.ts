import { IdemkitError } from "../errors.ts";

/** What became of a call of `runOnce`; known outcomes are values, never exceptions. */
export type Outcome<T, R = unknown> =
  | Finished<"executed", T, R>
  | Finished<"replayed", T, R>
  | {
      readonly outcome: "executed";
      readonly disposition: "discard";
      readonly operationId: string;
      readonly value: T;
    }
  | { readonly outcome: "in-progress" }
  | { readonly outcome: "mismatch" }
  | { readonly outcome: "uncertain"; readonly operationId: string };

/** A finished and stored operation: its value, or the value it was refused with. */
export type Finished<O extends "executed" | "replayed", T, R> =
  | { readonly outcome: O; readonly disposition: "keep"; readonly operationId: string; readonly value: T }
  | {
      readonly outcome: O;
      readonly disposition: "refuse";
      readonly operationId: string;
      readonly refusal: R;
    };

/** The name of an outcome, for metrics and logs. */
export type OutcomeName = Outcome<unknown>["outcome"];

/** A definitive no, made by {@link refuse}. It is an Error so that throwing it satisfies every linter. */
export class Refusal<R> extends Error {
  override readonly name = "Refusal";
  readonly value: R;

  constructor(value: R) {
    super("refused: throw this from a handler of runOnce");
    this.value = value;
  }
}

/**
 * Makes a refusal to throw from a handler of `runOnce`: `throw refuse({ reason: "card-expired" })`. The handler's
 * writes are rolled back, the value is stored, and repeats get it again; any other throw is discarded and may be
 * tried again.
 */
export function refuse<R>(value: R): Refusal<R> {
  return new Refusal(value);
}

/** Whether a thrown value came from {@link refuse}; works across copies of the package. */
export function isRefusal(thrown: unknown): thrown is Refusal<unknown> {
  return thrown instanceof Error && thrown.name === "Refusal" && "value" in thrown;
}

/**
 * The value of a finished operation.
 * @throws IdemkitError `operation_refused` (with `details.refusal`), `operation_in_progress`,
 * `idempotency_key_reused` or `operation_uncertain`, which `problemOf` turns into an HTTP answer.
 */
export function valueOf<T>(outcome: Outcome<T>): T {
  switch (outcome.outcome) {
    case "executed":
    case "replayed":
      if (outcome.disposition !== "refuse") return outcome.value;
      throw new IdemkitError("operation_refused", {
        details: { operationId: outcome.operationId, refusal: outcome.refusal },
      });
    case "in-progress":
      throw new IdemkitError("operation_in_progress");
    case "mismatch":
      throw new IdemkitError("idempotency_key_reused");
    case "uncertain":
      throw new IdemkitError("operation_uncertain", { details: { operationId: outcome.operationId } });
  }
}
