import type { Booking } from "../../../core/booking.ts";
import type { Queryable } from "./queryable.ts";

/** Any number will do, as long as every process takes the same one. */
const LEDGER_LOCK = 7_305_231_143;

// Two batches that met in the same accounts in different orders would deadlock. Nearly every entry touches the sales or a
// provider, so bookings wait for each other in any case: they do it in the front, where the order is theirs.
const text = `
  with turn as materialized (select count(pg_advisory_xact_lock($1)) as mine),
  entry as (
    insert into public.ledger_entry (event_id, order_id, debit_account, credit_account, amount, currency)
    select $2, $3, $4, $5, $6, $7 from turn where turn.mine > 0)
  insert into public.account_balance as b (account, currency, balance)
  select account, $7, change
  from turn, (values ($4, $6::numeric(19,4)), ($5, -$6::numeric(19,4))) as moved (account, change)
  where turn.mine > 0
  on conflict (account, currency) do update set balance = b.balance + excluded.balance`;

/** Writes an entry and moves both balances. */
export const book = async (tx: Queryable, eventId: string, booking: Booking): Promise<void> => {
  const { orderId, debit, credit, amount, currency } = booking;
  await tx.query({ text, values: [LEDGER_LOCK, eventId, orderId, debit, credit, amount, currency] });
};
