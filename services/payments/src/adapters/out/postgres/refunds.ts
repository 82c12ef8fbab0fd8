import { ServiceError } from "../../../core/errors.ts";
import { formatMoney, parseMoney, parsePositiveMoney } from "../../../core/money.ts";
import type { Origin, Refund, RefundCommand, Refunds } from "../../../core/ports.ts";
import { refundOf } from "../../../core/refund.ts";
import { lockOrder, setOrderStatus } from "./order-lock.ts";
import type { Queryable } from "./queryable.ts";

const columns = `
  r.id, r.payment_id as "paymentId", r.order_id as "orderId", r.provider, p.external_payment_id as "externalPaymentId",
  r.external_refund_id as "externalRefundId", r.amount, r.currency, r.status`;
const find = `
  select ${columns} from public.refund r join public.payment p on p.id = r.payment_id
  where r.order_id = $1 and r.operation = $2 and r.idempotency_key = $3`;
const insert = `
  with r as (
    insert into public.refund (payment_id, order_id, provider, amount, currency, status, operation, idempotency_key)
    values ($1, $2, $3, $4, $5, 'reserved', $6, $7)
    returning *)
  select ${columns} from r join public.payment p on p.id = r.payment_id`;
const orderOfPayment = "select order_id from public.payment where id = $1";
// What is only reserved counts: its call may be on the wire.
const findPaid = `
  select p.id, p.provider, p.amount, p.currency,
    (select coalesce(sum(r.amount), 0)::numeric(19,4) from public.refund r
     where r.payment_id = p.id and r.status in ('reserved', 'refunded')) as back
  from public.payment p
  where p.status = 'paid' and p.order_id = $1 and ($2::uuid is null or p.id = $2)`;
const decide = `
  update public.refund set status = $2, external_refund_id = $3 where id = $1 and status = 'reserved'`;
const isAllBack = `
  select sum(r.amount) >= (select p.amount from public.payment p where p.id = $1) as all_back
  from public.refund r where r.payment_id = $1 and r.status = 'refunded'`;

export const refunds: Refunds<Queryable> = {
  reserve: async (tx, command, origin) => {
    const orderId = command.of === "order" ? command.id : await orderOf(tx, command.id);
    await lockOrder(tx, orderId);
    const found = await one(tx, find, [orderId, origin.operation, origin.key]);
    if (found?.status === "reserved") {
      throw conflict("refund_in_progress", "a refund under this key is under way");
    }
    return found ?? reserved(tx, orderId, command, origin);
  },
  giveBack: async (tx, { id }) => {
    await tx.query({ text: decide, values: [id, "refused", null] });
  },
  settle: async (tx, { id, orderId, paymentId }, externalRefundId) => {
    await lockOrder(tx, orderId);
    await tx.query({ text: decide, values: [id, "refunded", externalRefundId] });
    const { rows } = await tx.query({ text: isAllBack, values: [paymentId] });
    const [row] = rows as { readonly all_back: boolean }[];
    await setOrderStatus(tx, orderId, row?.all_back === true ? "refunded" : "partially_refunded");
  },
};

const reserved = async (
  tx: Queryable,
  orderId: string,
  command: RefundCommand,
  { operation, key }: Origin,
): Promise<Refund> => {
  const paid = await paidPayment(tx, orderId, command);
  const asked = command.amount === undefined ? undefined : parsePositiveMoney("amount", command.amount);
  const amount = refundOf(parseMoney("amount", paid.amount), parseMoney("amount", paid.back), asked);
  const values = [paid.id, orderId, paid.provider, formatMoney(amount), paid.currency, operation, key];
  const refund = await one(tx, insert, values);
  if (refund === undefined) {
    throw new Error("an inserted refund came back without a row");
  }
  return refund;
};

interface PaidRow {
  readonly id: string;
  readonly provider: string;
  readonly amount: string;
  readonly currency: string;
  readonly back: string;
}

const paidPayment = async (tx: Queryable, orderId: string, { of, id }: RefundCommand): Promise<PaidRow> => {
  const { rows } = await tx.query({ text: findPaid, values: [orderId, of === "payment" ? id : null] });
  const [row] = rows as PaidRow[];
  if (row === undefined) {
    throw conflict("order_not_paid", "there is no payment through the provider to give back");
  }
  return row;
};

const orderOf = async (tx: Queryable, paymentId: string): Promise<string> => {
  const { rows } = await tx.query({ text: orderOfPayment, values: [paymentId] });
  const [row] = rows as { readonly order_id: string }[];
  if (row === undefined) {
    throw new ServiceError({
      kind: "not-found",
      code: "payment_not_found",
      message: "there is no such payment",
    });
  }
  return row.order_id;
};

const conflict = (code: string, message: string): ServiceError =>
  new ServiceError({ kind: "conflict", code, message });

const one = async (tx: Queryable, text: string, values: unknown[]): Promise<Refund | undefined> => {
  const { rows } = await tx.query({ text, values });
  return (rows as Refund[])[0];
};
