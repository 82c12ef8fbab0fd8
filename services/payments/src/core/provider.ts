/** Money to move, and the name that both sides know it by. */
export interface Movement {
  readonly kind: "charge" | "refund";
  readonly amount: string;
  readonly currency: string;
  /** Of a charge the payment's id, of a refund the provider's id of the charge. */
  readonly reference: string;
}

/** What the provider calls what it did. */
export interface Moved {
  readonly id: string;
}

/** One request to the provider. */
export interface ProviderCall {
  /** The same in every try. */
  readonly key: string;
  readonly signal: AbortSignal;
}

/** What is known of a movement whose answer was lost. */
export type Found =
  | { readonly recovered: "done"; readonly result: Moved }
  | { readonly recovered: "absent" }
  | { readonly recovered: "unknown" };

/** The payment provider, as far as the service needs it. */
export interface Provider {
  /** Whether it answers a repeated key with the first answer. */
  readonly honoursKeys: boolean;
  /** How long one request may take. */
  readonly deadlineMs: number;
  /** How long after that a request on the wire may still arrive there. */
  readonly graceMs: number;
  /** Moves money. Throws a refusal for a definitive no; after any other throw nobody knows what happened. */
  move(movement: Movement, call: ProviderCall): Promise<Moved>;
  /** Finds out what became of a key. */
  find(kind: Movement["kind"], call: ProviderCall): Promise<Found>;
}
