-- Lets the next attempt look at an uncertain operation again.
-- $1 scope, $2 operation, $3 key
update :"schema".idempotency_record
set disposition = 'running', lease_expires_at = clock_timestamp()
where scope = $1 and operation = $2 and key = $3 and disposition = 'uncertain'
