import type { Queryable } from "./queryable.ts";

const text = "select customer_id from public.payment where id = $1";

/** Whose payment it is. */
export const findPaymentOwner = async (
  tx: Queryable,
  id: string,
): Promise<{ readonly customerId: string } | undefined> => {
  const { rows } = await tx.query({ text, values: [id] });
  const [row] = rows as { readonly customer_id: string }[];
  return row === undefined ? undefined : { customerId: row.customer_id };
};
