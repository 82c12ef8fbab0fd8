-- One bounded batch of the cleaner. Skipping locked rows lets several instances share the work without waiting, and
-- never waits for a claim that takes an expired row over.
-- $1 batch size
delete from :"schema".idempotency_record
where ctid = any (array(
  select ctid from :"schema".idempotency_record
  where expires_at <= clock_timestamp()
  order by expires_at
  limit $1
  for update skip locked))
