-- The result of a call, after the call; only by the attempt that owns the operation.
-- $1 scope, $2 operation, $3 key, $4 attempt id, $5 lease in seconds, $6 name, $7 state, $8 result
with mine as (
  update :"schema".idempotency_record
  set lease_expires_at = clock_timestamp() + make_interval(secs => $5)
  where scope = $1 and operation = $2 and key = $3 and attempt_id = $4 and disposition = 'running'
  returning operation_id)
update :"schema".effect as e
set state = $7, result = $8, ended_at = clock_timestamp()
from mine
where e.operation_id = mine.operation_id and e.name = $6 and e.state = 'intent'
returning e.name
