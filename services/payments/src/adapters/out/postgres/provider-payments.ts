import { ServiceError } from "../../../core/errors.ts";
import type { Origin, ProviderPayment, ProviderPayments } from "../../../core/ports.ts";
import { lockOrder, setOrderStatus } from "./order-lock.ts";
import type { LockedOrder } from "./order-lock.ts";
import type { Queryable } from "./queryable.ts";

const columns = `
  id, order_id as "orderId", customer_id as "customerId", provider, external_payment_id as "externalPaymentId",
  amount, currency, status`;
const find = `select ${columns} from public.payment where order_id = $1 and operation = $2 and idempotency_key = $3`;
const findLive = "select 1 from public.payment where order_id = $1 and status in ('charging', 'paid')";
const insert = `
  insert into public.payment
    (order_id, customer_id, provider, amount, currency, status, operation, idempotency_key)
  values ($1, $2, $3, $4, $5, 'charging', $6, $7)
  returning ${columns}`;
// Only what is still under way is decided: a repeat changes nothing.
const decide =
  "update public.payment set status = $2, external_payment_id = $3 where id = $1 and status = 'charging'";
const reversal = "update public.payment set status = 'reversed' where id = $1";

/** The provider's name in our books. */
const PROVIDER = "acme-pay";

export const providerPayments: ProviderPayments<Queryable> = {
  open: async (tx, orderId, origin) => {
    const order = await lockOrder(tx, orderId);
    const found = await one(tx, find, [orderId, origin.operation, origin.key]);
    if (found?.status === "charging") {
      throw inProgress();
    }
    return found ?? opened(tx, order, origin);
  },
  decline: async (tx, { id }) => {
    await tx.query({ text: decide, values: [id, "declined", null] });
  },
  settle: async (tx, { id, orderId }, externalPaymentId) => {
    payable(await lockOrder(tx, orderId));
    await tx.query({ text: decide, values: [id, "paid", externalPaymentId] });
    await setOrderStatus(tx, orderId, "paid");
  },
  reverse: async (tx, { id, orderId }) => {
    await lockOrder(tx, orderId);
    await tx.query({ text: reversal, values: [id] });
  },
};

const opened = async (tx: Queryable, order: LockedOrder, origin: Origin): Promise<ProviderPayment> => {
  payable(order);
  const { rows } = await tx.query({ text: findLive, values: [order.id] });
  if (rows.length > 0) {
    throw inProgress();
  }
  const { id, customer_id: customerId, total, currency } = order;
  const values = [id, customerId, PROVIDER, total, currency, origin.operation, origin.key];
  const payment = await one(tx, insert, values);
  if (payment === undefined) {
    throw new Error("an inserted payment came back without a row");
  }
  return payment;
};

const payable = ({ status }: LockedOrder): void => {
  if (status !== "pending") {
    throw conflict("order_not_payable", `the order is ${status.replace("_", " ")}`);
  }
};

const one = async (tx: Queryable, text: string, values: unknown[]): Promise<ProviderPayment | undefined> => {
  const { rows } = await tx.query({ text, values });
  return (rows as ProviderPayment[])[0];
};

const inProgress = (): ServiceError =>
  conflict("payment_in_progress", "another payment of the order is under way");

const conflict = (code: string, message: string): ServiceError =>
  new ServiceError({ kind: "conflict", code, message });
