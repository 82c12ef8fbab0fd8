-- Removes an expired record with its ledger, so that the next claim is a new operation.
-- $1 scope, $2 operation, $3 key
with gone as (
  delete from :"schema".idempotency_record
  where scope = $1 and operation = $2 and key = $3 and expires_at <= clock_timestamp()
  returning operation_id)
delete from :"schema".effect as e using gone where e.operation_id = gone.operation_id
