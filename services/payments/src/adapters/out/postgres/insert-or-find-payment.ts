import { formatMoney, parseMoney } from "../../../core/money.ts";
import type { Payment, PaymentStatus } from "../../../core/payment.ts";
import type { Payments } from "../../../core/ports.ts";
import type { Queryable } from "./queryable.ts";

interface PaymentRow {
  readonly id: string;
  readonly order_id: string;
  readonly customer_id: string;
  readonly provider: string;
  readonly external_payment_id: string;
  readonly amount: string;
  readonly currency: string;
  readonly status: PaymentStatus;
}

const columns = "id, order_id, customer_id, provider, external_payment_id, amount, currency, status";

// No conflict target: either barrier counts. It waits for a concurrent insert of the same payment and then yields
// no row; a caught unique violation would leave the transaction aborted instead.
const insert = `
  insert into public.payment
    (order_id, customer_id, provider, external_payment_id, amount, currency, status, operation, idempotency_key)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
  on conflict do nothing
  returning ${columns}`;

// A statement of its own, because the insert's snapshot can predate the commit it waited for. Where the two
// barriers hold two different payments, the provider's identity of the money comes first.
const find = `
  select ${columns}
  from public.payment
  where (provider = $1 and external_payment_id = $2)
     or (order_id = $3 and operation = $4 and idempotency_key = $5)
  order by (provider = $1 and external_payment_id = $2) desc
  limit 1`;

export const insertOrFindPayment: Payments<Queryable>["insertOrFind"] = async (tx, payment, origin) => {
  const { orderId, customerId, provider, externalPaymentId, amount, currency, status } = payment;
  const { operation, key } = origin;
  const inserted = await firstRow(tx, insert, [
    orderId,
    customerId,
    provider,
    externalPaymentId,
    formatMoney(amount),
    currency,
    status,
    operation,
    key,
  ]);
  if (inserted !== undefined) {
    return { payment: toPayment(inserted), inserted: true };
  }
  const found = await firstRow(tx, find, [provider, externalPaymentId, orderId, operation, key]);
  if (found === undefined) {
    throw new Error("a payment was kept out by a barrier that holds none");
  }
  return { payment: toPayment(found), inserted: false };
};

const firstRow = async (tx: Queryable, text: string, values: unknown[]): Promise<PaymentRow | undefined> => {
  const { rows } = await tx.query({ text, values });
  return (rows as PaymentRow[])[0];
};

const toPayment = (row: PaymentRow): Payment => ({
  id: row.id,
  orderId: row.order_id,
  customerId: row.customer_id,
  provider: row.provider,
  externalPaymentId: row.external_payment_id,
  amount: parseMoney("amount", row.amount),
  currency: row.currency,
  status: row.status,
});
