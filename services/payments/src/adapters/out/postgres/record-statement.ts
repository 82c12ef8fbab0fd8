import type { Queryable } from "./queryable.ts";

/** Money that the provider says it moved. */
export interface ProviderMovement {
  readonly provider: string;
  readonly chargeId: string;
  readonly amount: string;
  readonly currency: string;
}

// Each kind touches its own column, and the status follows from both: whichever comes first, the end is the same.
const charge = `
  insert into public.provider_statement as s (provider, charge_id, reference, charged, currency)
  values ($1, $2, $3, $4, $5)
  on conflict (provider, charge_id) do update set reference = excluded.reference, charged = excluded.charged`;
const refund = `
  insert into public.provider_statement as s (provider, charge_id, refunded, currency)
  values ($1, $2, $3, $4)
  on conflict (provider, charge_id) do update set refunded = s.refunded + excluded.refunded`;

export const recordCharge = async (
  tx: Queryable,
  { provider, chargeId, amount, currency }: ProviderMovement,
  reference: string,
): Promise<void> => {
  await tx.query({ text: charge, values: [provider, chargeId, reference, amount, currency] });
};

/** Adds to what was given back: told twice, it would count twice. The inbox sees to it that it isn't. */
export const recordRefund = async (
  tx: Queryable,
  { provider, chargeId, amount, currency }: ProviderMovement,
): Promise<void> => {
  await tx.query({ text: refund, values: [provider, chargeId, amount, currency] });
};
