-- Says that nobody knows whether a call took effect. Only the attempt that owns the operation may say so.
-- $1 scope, $2 operation, $3 key, $4 attempt id
update :"schema".idempotency_record
set disposition = 'uncertain', attempt_id = null, lease_expires_at = clock_timestamp()
where scope = $1 and operation = $2 and key = $3 and attempt_id = $4 and disposition = 'running'
