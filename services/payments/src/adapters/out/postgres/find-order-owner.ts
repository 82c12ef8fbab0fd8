import type { Queryable } from "./queryable.ts";

const text = "select customer_id from public.orders where id = $1";

/** Whose order it is: all that access depends on. */
export const findOrderOwner = async (
  tx: Queryable,
  id: string,
): Promise<{ readonly customerId: string } | undefined> => {
  const { rows } = await tx.query({ text, values: [id] });
  const [row] = rows as { readonly customer_id: string }[];
  return row === undefined ? undefined : { customerId: row.customer_id };
};
