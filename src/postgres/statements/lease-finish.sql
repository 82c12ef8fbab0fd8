-- The end of an attempt, in the transaction of its final writes: a compare-and-set that fails with an error (22012, a
-- division by zero) and never with "zero rows", so that COMMIT may follow in the same flight.
-- $1 scope, $2 operation, $3 key, $4 attempt id, $5 disposition, $6 status, $7 headers, $8 body, $9 retention in seconds
with mine as (
  update :"schema".idempotency_record
  set disposition = $5, status = $6, headers = $7, body = $8,
      expires_at = clock_timestamp() + make_interval(secs => $9),
      attempt_id = null, lease_expires_at = null, command = null
  where scope = $1 and operation = $2 and key = $3 and attempt_id = $4 and disposition = 'running'
  returning 1)
select 1 / count(*) from mine
