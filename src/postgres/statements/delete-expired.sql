-- One bounded batch of the cleaner, records with their ledgers of calls. Skipping locked rows lets several instances share
-- the work without waiting, and never waits for a claim that takes an expired row over.
-- $1 batch size
with gone as (
  delete from :"schema".idempotency_record
  where ctid = any (array(
    select ctid from :"schema".idempotency_record
    where expires_at <= clock_timestamp()
    order by expires_at
    limit $1
    for update skip locked))
  returning operation_id),
ledger as (
  delete from :"schema".effect as e using gone where e.operation_id = gone.operation_id)
select from gone
