-- The heartbeat: one statement for all attempts of a process. An expired lease that nobody took is renewed; an attempt
-- that does not come back has been taken over. Rows are locked in the order of their ids, so that two heartbeats and a
-- rescuer cannot deadlock.
-- $1 attempt ids, $2 lease in seconds
with mine as materialized (
  select ctid, attempt_id from :"schema".idempotency_record
  where disposition = 'running' and attempt_id = any ($1::uuid[])
  order by operation_id
  for update)
update :"schema".idempotency_record as x
set lease_expires_at = clock_timestamp() + make_interval(secs => $2)
from mine
where x.ctid = mine.ctid
returning x.attempt_id
