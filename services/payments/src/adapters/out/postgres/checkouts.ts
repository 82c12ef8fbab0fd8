import type { Queryable } from "./queryable.ts";

/** A checkout as it was asked for; how far it has come is its saga's business. */
export interface Checkout {
  readonly id: string;
  readonly orderId: string;
  readonly customerId: string;
}

const insert = "insert into public.checkout (id, order_id, customer_id) values ($1, $2, $3)";
const find = `
  select id, order_id as "orderId", customer_id as "customerId" from public.checkout where id = $1`;

export const insertCheckout = async (tx: Queryable, { id, orderId, customerId }: Checkout): Promise<void> => {
  await tx.query({ text: insert, values: [id, orderId, customerId] });
};

export const findCheckout = async (tx: Queryable, id: string): Promise<Checkout | undefined> => {
  const { rows } = await tx.query({ text: find, values: [id] });
  return (rows as Checkout[])[0];
};
