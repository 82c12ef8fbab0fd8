import { ServiceError } from "./errors.ts";
import type { ErrorKind, FieldFault } from "./errors.ts";

/** A definitive no as plain data, so that it can be stored and given again to every repeat. */
export interface StoredRefusal {
  readonly kind: ErrorKind;
  readonly code: string;
  readonly message: string;
  readonly faults: readonly FieldFault[];
}

/** The refusal of an error that is a decision; `undefined` for what may go away by itself. */
export const storedRefusalOf = (error: unknown): StoredRefusal | undefined => {
  if (!(error instanceof ServiceError) || error.kind === "unavailable") {
    return undefined;
  }
  const { kind, code, message, faults } = error;
  return { kind, code, message, faults };
};

/** The error that a stored refusal was made of. */
export const errorOfRefusal = (refusal: unknown): ServiceError => new ServiceError(refusal as StoredRefusal);
